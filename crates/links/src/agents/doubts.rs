//! Tracks the clusters whose right to link may have changed, and notifies their links.
//!
//! A registration follows its cluster before it is judged, so that no change is lost between the
//! judgement and the link. For later registrations, reviews from before a change stay doubtful as
//! long as they may be cached.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tunnel::ClusterName;

/// How long a change is remembered: longer than any review is cached.
const REMEMBERED: Duration = Duration::from_secs(15);
/// Most changes remembered by cluster. With more, all earlier reviews are doubtful.
const MOST_REMEMBERED: usize = 8_192;

/// The followed clusters, and the recent changes.
#[derive(Debug, Default)]
pub struct Doubts(Mutex<FollowedClusters>);

#[derive(Debug, Default)]
struct FollowedClusters {
    /// Clusters with links or registrations, which bound its size.
    followed: HashMap<ClusterName, Followed, RandomState>,
    recent: HashMap<ClusterName, Instant, RandomState>,
    /// Time of the last change that may concern any cluster.
    all: Option<Instant>,
}

#[derive(Debug)]
struct Followed {
    by: usize,
    told: watch::Sender<Option<Instant>>,
}

/// Follows a cluster until dropped.
#[derive(Debug)]
pub struct Doubt {
    doubts: Arc<Doubts>,
    cluster: ClusterName,
    since: Option<Instant>,
    told: watch::Receiver<Option<Instant>>,
}

/// Reports changes since its [`Doubt`] was made.
#[derive(Debug)]
pub struct Changes(watch::Receiver<Option<Instant>>);

// === impl Doubts ===

impl Doubts {
    pub fn follow(self: &Arc<Self>, cluster: &ClusterName) -> Doubt {
        let mut state = self.0.lock();
        let since = state.recent.get(cluster).copied().max(state.all);
        let followed = state.followed.entry(cluster.clone()).or_insert_with(Followed::new);
        followed.by += 1;
        let told = followed.told.subscribe();
        Doubt { doubts: Arc::clone(self), cluster: cluster.clone(), since, told }
    }

    /// Whether no cluster has a link or a registration.
    pub fn is_idle(&self) -> bool {
        self.0.lock().followed.is_empty()
    }

    /// Makes earlier reviews of `cluster` doubtful and notifies its links. True if a link or a
    /// registration follows the cluster, which will cost the hub a review.
    pub fn cast(&self, cluster: &ClusterName) -> bool {
        let (mut state, now) = (self.0.lock(), Instant::now());
        if state.recent.len() >= MOST_REMEMBERED {
            state.recent.retain(|_, at| now - *at < REMEMBERED);
        }
        if state.recent.len() >= MOST_REMEMBERED {
            state.recent.clear();
            state.all = Some(now);
        }
        state.recent.insert(cluster.clone(), now);
        let followed = state.followed.get(cluster);
        if let Some(followed) = followed {
            followed.told.send_replace(Some(now));
        }
        followed.is_some()
    }

    /// Makes earlier reviews of all clusters doubtful for later registrations. Returns the followed
    /// clusters; only [`Doubts::cast`] notifies their links.
    pub fn cast_all(&self) -> Vec<ClusterName> {
        let mut state = self.0.lock();
        state.all = Some(Instant::now());
        state.followed.keys().cloned().collect()
    }
}

// === impl Followed ===

impl Followed {
    fn new() -> Self {
        Self { by: 0, told: watch::Sender::new(None) }
    }
}

// === impl Doubt ===

impl Doubt {
    /// Time of the last change before the cluster was followed.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    pub fn changes(&self) -> Changes {
        Changes(self.told.clone())
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        let mut state = self.doubts.0.lock();
        if let Some(followed) = state.followed.get_mut(&self.cluster) {
            followed.by -= 1;
            if followed.by == 0 {
                state.followed.remove(&self.cluster);
            }
        }
    }
}

// === impl Changes ===

impl Changes {
    /// Time of the next change. Never completes if there is none.
    pub async fn next(&mut self) -> Instant {
        loop {
            if self.0.changed().await.is_err() {
                return std::future::pending().await;
            }
            if let Some(at) = *self.0.borrow_and_update() {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use net::random;
    use tokio::time::{advance, timeout};

    use super::*;

    fn name(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_during_a_registration_is_told_and_one_before_it_is_known() {
        let doubts = Arc::new(Doubts::default());
        let first = doubts.follow(&name("east"));
        assert_eq!(first.since(), None);
        doubts.cast(&name("east"));
        let at = Instant::now();
        assert_eq!(first.changes().next().await, at);
        let (second, other) = (doubts.follow(&name("east")), doubts.follow(&name("west")));
        assert_eq!((second.since(), other.since()), (Some(at), None));
        let nothing = timeout(Duration::from_secs(1), other.changes().next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
        drop((first, second, other));
        assert!(doubts.0.lock().followed.is_empty(), "nobody is remembered who has gone");
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_many_clusters_are_remembered_as_one_of_all() {
        let doubts = Arc::new(Doubts::default());
        for number in 0..MOST_REMEMBERED {
            doubts.cast(&name(&format!("c{number}")));
        }
        advance(REMEMBERED / 2).await;
        assert_eq!(doubts.follow(&name("other")).since(), None);
        doubts.cast(&name(&random::identifier()));
        assert_eq!(doubts.follow(&name("other")).since(), Some(Instant::now()));
        assert_eq!(doubts.0.lock().recent.len(), 1);
    }
}
