//! The resources that have become labels, of all clusters together.
//!
//! They are never taken back, since counters of resources outlive clusters. So a word must be worth
//! it: callers can make up any, and a member refuses those. What it takes a member to be malicious
//! for is bounded by what one cluster may bring.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Longest label taken from a path, in bytes: a DNS label, which a resource's name is.
const LONGEST: usize = 63;
/// The label of what is no name of a resource, or one too many.
pub const OTHER: &str = "other";

/// A fleet's clusters have many custom resources in common; three that make up as many as they may
/// leave room for others.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub struct Labels(Mutex<HashSet<Arc<str>>>);

/// The label of `resource`, the caller's word: itself, empty if there is none, [`OTHER`] for what
/// cannot be one.
pub fn label(resource: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if resource.len() <= LONGEST && resource.bytes().all(plain) { resource } else { OTHER }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_resources_or_nothing_or_other() {
        for (resource, expected) in [
            ("pods", "pods"),
            ("clustergateways", "clustergateways"),
            ("", ""),
            ("%70ods", OTHER),
            ("Pods", OTHER),
            ("po\u{e4}ds", OTHER),
            ("pods\n", OTHER),
        ] {
            assert_eq!(label(resource), expected, "{resource}");
        }
        assert_eq!(label(&"x".repeat(LONGEST + 1)), OTHER);
    }
}
