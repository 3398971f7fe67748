//! How many accounts of one cluster are looked at at a time: a member that lets each call wait
//! keeps no other cluster's waiting.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use api::cluster_name::ClusterName;
use net::permit::Permit;
use parking_lot::Mutex;

/// Of one cluster, a quarter of all.
const MOST: usize = super::AT_ONCE as usize / 4;
/// For one that had no place.
pub const COMES_AGAIN: Duration = Duration::from_secs(1);

/// By cluster. None is kept that has no account in work.
#[derive(Default)]
pub struct Places(Mutex<HashMap<ClusterName, Arc<AtomicUsize>>>);

// === impl Places ===

impl Places {
    /// One more of the cluster, if it has any left.
    pub fn of(&self, cluster: &ClusterName) -> Option<Permit<AtomicUsize>> {
        let mut places = self.0.lock();
        places.retain(|_, count| Arc::strong_count(count) > 1);
        Permit::of(places.entry(cluster.clone()).or_default(), MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_takes_no_place_of_another() {
        let places = Places::default();
        let [slow, other] = ["slow", "other"].map(|name| ClusterName::parse(name).unwrap());
        let mut taken: Vec<_> = (0..MOST).map(|_| places.of(&slow).unwrap()).collect();
        assert!(places.of(&slow).is_none());
        assert!(places.of(&other).is_some());
        taken.pop();
        assert!(places.of(&slow).is_some(), "given back");
        taken.clear();
        drop(places.of(&other));
        assert_eq!(places.0.lock().len(), 1, "those that are done are forgotten");
    }
}
