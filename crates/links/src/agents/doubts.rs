//! Clusters whose right to link may have changed, and the links that want to hear of it.
//!
//! A registration follows its cluster from before it is judged, so that no change is lost between
//! the judgement and the link. Answers of the hub before a change stay doubtful for as long as they
//! may be kept, for later registrations.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tunnel::ClusterName;

/// How long a change is remembered: above the longest time for which the hub's word is kept.
const REMEMBERED: Duration = Duration::from_secs(15);
/// Changes remembered by cluster. After more, all that the hub said before is doubtful.
const MOST_REMEMBERED: usize = 8_192;

/// See the module.
#[derive(Debug, Default)]
pub struct Doubts(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Clusters with links, or with registrations: these bound it.
    followed: HashMap<ClusterName, Followed, RandomState>,
    recent: HashMap<ClusterName, Instant, RandomState>,
    /// The last change that may concern any cluster.
    all: Option<Instant>,
}

#[derive(Debug)]
struct Followed {
    by: usize,
    told: watch::Sender<Option<Instant>>,
}

/// A cluster that is followed, until dropped.
#[derive(Debug)]
pub struct Doubt {
    doubts: Arc<Doubts>,
    cluster: ClusterName,
    since: Option<Instant>,
    told: watch::Receiver<Option<Instant>>,
}

/// Tells of changes from when its [`Doubt`] was made.
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

    /// Whether no link of a judged agent, or of one about to be judged, is left.
    pub fn is_idle(&self) -> bool {
        self.0.lock().followed.is_empty()
    }

    /// What the hub said of `cluster` before now does not count. True if a follower will ask the
    /// hub again.
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

    /// What the hub said of any cluster before now does not count for later registrations. Returns
    /// the clusters that are followed; only [`Doubts::cast`] notifies their links.
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
    /// When something last changed before it was made.
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
    /// When the next change was reported. Never completes if there is none.
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
