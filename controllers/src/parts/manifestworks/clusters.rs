//! Which clusters this part delivers to: only those whose `ManagedCluster` says so.

use std::collections::{HashMap, HashSet};
use std::num::NonZeroU64;

use parking_lot::RwLock;
pub use register::ocm::delivery::{DELIVERY_ANNOTATION, Mode};
use tokio::sync::Notify;

/// Cheap to read.
#[derive(Debug, Default)]
pub struct Clusters {
    known: RwLock<Observed>,
    /// Notified when all were listed.
    listed: Notify,
}

#[derive(Debug, Default)]
struct Observed {
    modes: HashMap<String, Mode>,
    /// Number of mode changes of all clusters.
    changes: u64,
    /// This replica has begun to deliver: later modes are addressed to it.
    has_begun: bool,
    /// All existing clusters; none while they are unknown.
    there: Option<HashSet<String>>,
    /// The existing clusters that are being deleted.
    ending: HashSet<String>,
}

// === impl Clusters ===

impl Clusters {
    /// How a cluster is delivered to; none if this part does not deliver to it.
    pub fn mode(&self, cluster: &str) -> Option<Mode> {
        self.known.read().modes.get(cluster).copied()
    }

    /// Begins a term. Modes that are set until all clusters are listed again may have been carried
    /// out by others.
    pub fn begin(&self) {
        let mut known = self.known.write();
        (known.has_begun, known.there) = (true, None);
        known.modes.values_mut().filter(|mode| mode.is_like(Mode::UNHEARD)).for_each(|mode| *mode = Mode::UNHEARD);
    }

    /// Completes when the existing clusters are known.
    pub async fn are_listed(&self) {
        loop {
            // From here on, it misses no list.
            let listed = self.listed.notified();
            if self.known.read().there.is_some() {
                return;
            }
            listed.await;
        }
    }

    /// Sets a cluster's present mode. Returns whether it has changed.
    pub fn put(&self, cluster: &str, mode: Option<Mode>) -> bool {
        let mut known = self.known.write();
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
                let is_heard = known.has_begun && known.there.is_some();
                let time = NonZeroU64::new(known.changes).filter(|_| is_heard);
                known.modes.insert(cluster.to_owned(), Mode::Adopt(time))
            }
            None => known.modes.remove(cluster),
        };
        true
    }

    /// Sets all existing clusters.
    pub fn listed(&self, there: HashSet<String>) {
        let mut known = self.known.write();
        known.ending.retain(|cluster| there.contains(cluster));
        known.there = Some(there);
        drop(known);
        self.listed.notify_waiters();
    }

    /// A cluster exists.
    pub fn saw(&self, cluster: &str, is_ending: bool) {
        let mut known = self.known.write();
        if let Some(there) = &mut known.there {
            there.insert(cluster.to_owned());
        }
        if is_ending {
            known.ending.insert(cluster.to_owned());
        } else {
            known.ending.remove(cluster);
        }
    }

    /// A cluster no longer exists.
    pub fn lost(&self, cluster: &str) {
        let mut known = self.known.write();
        known.ending.remove(cluster);
        if let Some(there) = &mut known.there {
            there.remove(cluster);
        }
    }

    /// Whether a cluster of that name certainly does not exist.
    pub fn is_gone(&self, cluster: &str) -> bool {
        self.known.read().there.as_ref().is_some_and(|there| !there.contains(cluster))
    }

    /// The same, or the cluster is being deleted.
    pub fn is_leaving(&self, cluster: &str) -> bool {
        self.is_gone(cluster) || self.known.read().ending.contains(cluster)
    }

    /// The clusters with a mode that do not exist, by `is_there`.
    pub fn missing(&self, is_there: impl Fn(&str) -> bool) -> Vec<String> {
        self.known.read().modes.keys().filter(|cluster| !is_there(cluster)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_cluster_is_ours_by_its_own_word_alone() {
        let clusters = Clusters::default();
        clusters.begin();
        clusters.listed(HashSet::new());
        assert_eq!(clusters.mode("a"), None);
        for (value, mode) in [("push", Some(Mode::Push)), ("adopt", Some(Mode::UNHEARD)), ("Push", None), ("", None)] {
            assert_eq!(Mode::read(Some(value)), mode, "{value}");
        }
        assert!(clusters.put("a", Some(Mode::Push)) && !clusters.put("a", Some(Mode::Push)));
        assert!(clusters.put("a", Some(Mode::UNHEARD)) && !clusters.put("a", Some(Mode::UNHEARD)));
        let first = clusters.mode("a");
        assert!(matches!(first, Some(Mode::Adopt(Some(_)))), "{first:?}");
        // Set again, it is a new time.
        assert!(clusters.put("a", Some(Mode::Push)) && clusters.put("a", Some(Mode::UNHEARD)));
        assert!(matches!(clusters.mode("a"), Some(Mode::Adopt(_))) && clusters.mode("a") != first);
        assert_eq!(clusters.missing(|cluster| cluster != "a"), ["a"]);
        assert!(clusters.put("a", None) && clusters.mode("a").is_none() && !clusters.put("a", None));
    }

    #[test]
    fn who_said_adopt_before_this_replica_began_may_have_been_heard() {
        let (clusters, there) = (Clusters::default(), || HashSet::from(["a".to_owned(), "b".to_owned()]));
        clusters.saw("a", false);
        assert!(clusters.put("a", Some(Mode::UNHEARD)));
        clusters.listed(there());
        assert!(clusters.put("b", Some(Mode::Push)) && clusters.put("b", Some(Mode::UNHEARD)));
        clusters.begin();
        // The earlier leader may have seen what this replica's watch had not brought.
        assert!(clusters.put("a", Some(Mode::Push)) && clusters.put("a", Some(Mode::UNHEARD)));
        assert!(clusters.are_listed().now_or_never().is_none() && !clusters.is_gone("c"), "they are listed anew");
        clusters.listed(there());
        assert!(clusters.are_listed().now_or_never().is_some() && clusters.is_gone("c"));
        let both = || ["a", "b"].map(|name| clusters.mode(name));
        assert_eq!(both(), [Some(Mode::UNHEARD); 2], "by the list, and to whoever led then");
        assert!(clusters.put("b", Some(Mode::Push)) && clusters.put("b", Some(Mode::UNHEARD)));
        assert!(matches!(both(), [Some(Mode::UNHEARD), Some(Mode::Adopt(Some(_)))]), "{:?}", both());
        // Nor does a replica that begins with a list know when the mode was set.
        let cold = Clusters::default();
        cold.begin();
        assert!(cold.put("a", Some(Mode::UNHEARD)));
        assert_eq!(cold.mode("a"), Some(Mode::UNHEARD));
    }

    #[test]
    fn what_is_gone_is_known_once_all_are_listed() {
        let clusters = Clusters::default();
        clusters.saw("a", false);
        assert!(!clusters.is_gone("a") && !clusters.is_gone("b"), "nobody has said which there are");
        clusters.listed(HashSet::from(["a".to_owned()]));
        assert!(!clusters.is_leaving("a") && clusters.is_gone("b"));
        clusters.saw("a", true);
        assert!(clusters.is_leaving("a") && !clusters.is_gone("a"));
        clusters.lost("a");
        assert!(clusters.is_gone("a"));
        clusters.saw("a", false);
        assert!(!clusters.is_leaving("a"), "another one of that name");
    }
}
