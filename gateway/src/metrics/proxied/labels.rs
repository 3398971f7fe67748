//! The resources that have become labels, for all clusters together.
//!
//! Labels are never removed, because counters of resources outlive clusters. So a name must prove
//! itself: callers can invent any name, and a member refuses invented ones. A malicious member
//! could confirm them; the limit for one cluster bounds that.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

/// Longest label taken from a path, in bytes: the length of a DNS label, because a resource's name
/// is one.
const LONGEST: usize = 63;
/// The label for text that is no resource's name, and for names beyond the limits.
pub const OTHER: &str = "other";

/// Most labels. A fleet's clusters share many custom resources. Three clusters that invent as many
/// as they may still leave room for others.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub struct Labels(Mutex<HashSet<Arc<str>>>);

/// The label for the text `resource` of a caller: itself, empty if there is none, or [`OTHER`] if
/// it cannot be a name.
pub fn label(resource: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    if resource.len() <= LONGEST && resource.bytes().all(plain) { resource } else { OTHER }
}

// === impl Labels ===

impl Labels {
    /// The label `name`, or `None` if it gets none. `proven`: a member has responded to a request
    /// for it with success. The empty label and [`OTHER`] need no proof.
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
