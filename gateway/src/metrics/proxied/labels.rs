//! The resources that have become labels, of all clusters together.
//!
//! They are never taken back, since counters of resources outlive clusters. So a word must be worth
//! it: callers can make up any, and a member refuses those. What it takes a member to be malicious
//! for is bounded by what one cluster may bring.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::metrics::resource::OTHER;

/// A fleet's clusters have many custom resources in common; three that make up as many as they may
/// leave room for others.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub struct Labels(Mutex<HashSet<Arc<str>>>);

// === impl Labels ===

impl Labels {
    /// `name` as a label, `None` if it has to do without. `proven`: a member has answered a request
    /// for it with a success. What is about no resource, or cannot be one, is nobody's word.
    pub fn of(&self, name: &str, proven: bool) -> Option<Arc<str>> {
        let mut known = self.0.lock();
        if let Some(label) = known.get(name) {
            return Some(Arc::clone(label));
        }
        let given = matches!(name, "" | OTHER) || proven && known.len() < MOST;
        given.then(|| {
            let label: Arc<str> = name.into();
            known.insert(Arc::clone(&label));
            label
        })
    }
}
