//! Which clusters are delivered to from here: those whose `ManagedCluster` says so, and no other.

use std::collections::HashMap;

use parking_lot::RwLock;
pub use register::ocm::delivery::{DELIVERY, Mode};

/// Cheap to read.
#[derive(Debug, Default)]
pub struct Clusters(RwLock<Known>);

#[derive(Debug, Default)]
struct Known {
    modes: HashMap<String, Mode>,
    /// How often any has become another one.
    changes: u64,
}

// === impl Clusters ===

impl Clusters {
    /// How a cluster is delivered to; none: not from here.
    pub fn mode(&self, cluster: &str) -> Option<Mode> {
        self.0.read().modes.get(cluster).copied()
    }

    /// What a cluster says now. Returns whether that is news.
    pub fn put(&self, cluster: &str, mode: Option<Mode>) -> bool {
        let mut known = self.0.write();
        let is_same = match (known.modes.get(cluster), mode) {
            (Some(before), Some(mode)) => before.is_like(mode),
            (before, mode) => before.is_none() && mode.is_none(),
        };
        if is_same {
            return false;
        }
        known.changes += 1;
        match mode {
            Some(Mode::Push) => known.modes.insert(cluster.to_owned(), Mode::Push),
            Some(Mode::Adopt(_)) => {
                let time = known.changes;
                known.modes.insert(cluster.to_owned(), Mode::Adopt(time))
            }
            None => known.modes.remove(cluster),
        };
        true
    }

    /// Those that are not among `there`.
    pub fn missing(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        self.0.read().modes.keys().filter(|cluster| !is_there(cluster)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_ours_by_its_own_word_alone() {
        let clusters = Clusters::default();
        assert_eq!(clusters.mode("a"), None);
        for (value, mode) in [("push", Some(Mode::Push)), ("adopt", Some(Mode::Adopt(0))), ("Push", None), ("", None)] {
            assert_eq!(Mode::read(Some(value)), mode, "{value}");
        }
        assert!(clusters.put("a", Some(Mode::Push)) && !clusters.put("a", Some(Mode::Push)));
        assert!(clusters.put("a", Some(Mode::Adopt(0))) && !clusters.put("a", Some(Mode::Adopt(0))));
        let first = clusters.mode("a");
        assert!(matches!(first, Some(Mode::Adopt(1..))), "{first:?}");
        // Said once more, it is another time.
        assert!(clusters.put("a", Some(Mode::Push)) && clusters.put("a", Some(Mode::Adopt(0))));
        assert!(matches!(clusters.mode("a"), Some(Mode::Adopt(_))) && clusters.mode("a") != first);
        assert_eq!(clusters.missing(|cluster| cluster != "a"), ["a"]);
        assert!(clusters.put("a", None) && clusters.mode("a").is_none() && !clusters.put("a", None));
    }
}
