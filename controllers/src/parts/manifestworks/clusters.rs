//! Which clusters are delivered to from here: those whose `ManagedCluster` says so, and no other.

use std::collections::HashMap;

use parking_lot::RwLock;
pub use register::ocm::delivery::{DELIVERY, Mode};

/// Cheap to read.
#[derive(Debug, Default)]
pub struct Clusters(RwLock<HashMap<String, Mode>>);

// === impl Clusters ===

impl Clusters {
    /// How a cluster is delivered to; none: not from here.
    pub fn mode(&self, cluster: &str) -> Option<Mode> {
        self.0.read().get(cluster).copied()
    }

    /// What a cluster says now. Returns whether that is news.
    pub fn put(&self, cluster: &str, mode: Option<Mode>) -> bool {
        let mut clusters = self.0.write();
        let before = match mode {
            Some(mode) => clusters.insert(cluster.to_owned(), mode),
            None => clusters.remove(cluster),
        };
        before != mode
    }

    /// Those that are not among `there`.
    pub fn missing(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        self.0.read().keys().filter(|cluster| !is_there(cluster)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_ours_by_its_own_word_alone() {
        let clusters = Clusters::default();
        assert_eq!(clusters.mode("a"), None);
        for (value, mode) in [("push", Some(Mode::Push)), ("adopt", Some(Mode::Adopt)), ("Push", None), ("", None)] {
            assert_eq!(Mode::read(Some(value)), mode, "{value}");
        }
        assert!(clusters.put("a", Some(Mode::Push)) && !clusters.put("a", Some(Mode::Push)));
        assert!(clusters.put("a", Some(Mode::Adopt)) && clusters.mode("a") == Some(Mode::Adopt));
        assert_eq!(clusters.missing(|cluster| cluster != "a"), ["a"]);
        assert!(clusters.put("a", None) && clusters.mode("a").is_none() && !clusters.put("a", None));
    }
}
