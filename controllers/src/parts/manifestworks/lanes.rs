//! Shared capacity of clusters, with limits for all, for one, and for all that are slow. A cluster
//! that is slow, or hangs, delays only others like it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Slow clusters hold at most one part in this many of the shared capacity.
const SLOW_SHARE: usize = 4;
/// Weight of a slow use; a quick use subtracts 1.
const WEIGHT: u8 = 2;
/// From this slowness on, a cluster has one use at a time; unknown clusters start here.
const NARROW: u8 = 4;
/// From this slowness on, it is known to be slow.
const SLOW: u8 = 6;
/// Limit of the slowness: fewer quick uses in a row than this make any cluster quick again.
const MOST: u8 = 8;

/// The capacity of all clusters. Clones share it.
#[derive(Clone)]
pub struct Lanes {
    all: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    /// As much for clusters that are not known yet, so that slow ones do not delay their first use.
    new: Arc<Semaphore>,
    of_one: usize,
    slow_after: Duration,
}

/// The capacity of one cluster. Clones share it.
#[derive(Clone)]
pub struct Lane {
    of_all: Lanes,
    own: Arc<Semaphore>,
    /// One use, while the cluster is slow.
    narrow: Arc<Semaphore>,
    slowness: Arc<AtomicU8>,
    /// It was slow once, and has not been quick for long since.
    was_slow: Arc<AtomicBool>,
}

/// One use. The time for which it is held determines whether its cluster is slow.
pub struct LanePermit {
    lane: Lane,
    since: Instant,
    _permits: Vec<OwnedSemaphorePermit>,
}

// === impl Lanes ===

impl Lanes {
    /// `all` concurrent uses, of which `of_one` are of one cluster; a cluster is slow if its uses
    /// repeatedly take longer than `slow_after`.
    pub fn new(all: usize, of_one: usize, slow_after: Duration) -> Self {
        let slow = (all / SLOW_SHARE).max(1);
        let [all, slow, new] = [all, slow, slow].map(|count| Arc::new(Semaphore::new(count)));
        Self { all, slow, new, of_one, slow_after }
    }

    /// The capacity of one more cluster.
    pub fn lane(&self) -> Lane {
        Lane {
            of_all: self.clone(),
            own: Arc::new(Semaphore::new(self.of_one)),
            narrow: Arc::new(Semaphore::new(1)),
            slowness: Arc::new(AtomicU8::new(NARROW)),
            was_slow: Arc::default(),
        }
    }
}

// === impl Lane ===

impl Lane {
    /// Waits for a use. Each cluster first waits behind its own uses, so that only few of each wait
    /// for the shared capacity, in turn.
    pub async fn enter(&self) -> LanePermit {
        let mut permits = Vec::new();
        let mut take = async |of: &Arc<Semaphore>| permits.extend(Arc::clone(of).acquire_owned().await.ok());
        take(&self.own).await;
        if self.is_narrow() {
            take(&self.narrow).await;
        }
        // It may have turned out quick meanwhile.
        if self.is_narrow() {
            let was_slow = self.was_slow.load(Ordering::Relaxed);
            take(if was_slow { &self.of_all.slow } else { &self.of_all.new }).await;
        }
        take(&self.of_all.all).await;
        LanePermit { lane: self.clone(), since: Instant::now(), _permits: permits }
    }

    /// Whether it has been slow repeatedly.
    pub fn is_slow(&self) -> bool {
        self.slowness.load(Ordering::Relaxed) >= SLOW
    }

    fn is_narrow(&self) -> bool {
        self.slowness.load(Ordering::Relaxed) >= NARROW
    }

    fn took(&self, time: Duration) {
        let is_slow = time > self.of_all.slow_after;
        let next =
            |known: u8| Some(if is_slow { known.saturating_add(WEIGHT).min(MOST) } else { known.saturating_sub(1) });
        let before = self.slowness.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        // A cluster that was quick often enough counts as unknown again.
        if is_slow || before.is_ok_and(|before| before <= 1) {
            self.was_slow.store(is_slow, Ordering::Relaxed);
        }
    }
}

// === impl LanePermit ===

impl Drop for LanePermit {
    fn drop(&mut self) {
        self.lane.took(self.since.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::time::{advance, sleep, timeout};

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Uses the lane once, for this long.
    async fn once(lane: &Lane, time: Duration) {
        let _held = lane.enter().await;
        sleep(time).await;
    }

    fn slow(lanes: &Lanes, count: usize) -> Vec<Lane> {
        let lanes: Vec<Lane> = (0..count).map(|_| lanes.lane()).collect();
        for lane in &lanes {
            for _ in 0..4 {
                lane.took(10 * SECOND);
            }
        }
        lanes
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_leave_most_to_others() {
        let lanes = Lanes::new(256, 4, SECOND);
        let quick = lanes.lane();
        once(&quick, Duration::ZERO).await;
        let hanging = slow(&lanes, 1000);
        let tasks = hanging.iter().flat_map(|lane| (0..4).map(|_| lane.clone()));
        let tasks: Vec<_> = tasks.map(|lane| tokio::spawn(async move { once(&lane, Duration::MAX).await })).collect();
        sleep(SECOND).await;
        assert_eq!(lanes.all.available_permits(), 192, "they hold a quarter");
        for _ in 0..4 {
            timeout(SECOND, once(&quick, Duration::ZERO)).await.expect("a quick one waits for nobody");
        }
        for task in tasks {
            task.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_hangs_has_one_until_it_answers_again() {
        let lanes = Lanes::new(256, 4, SECOND);
        let lane = lanes.lane();
        let count = || std::iter::from_fn(|| lane.enter().now_or_never()).collect::<Vec<_>>();
        assert_eq!(count().len(), 1, "nothing is known of it yet");
        let held = count();
        assert!(held.len() == 4 && !lane.is_slow(), "it answered");
        advance(30 * SECOND).await;
        drop(held);
        assert!(lane.is_slow());
        assert_eq!(count().len(), 1);
        for _ in 0..5 {
            once(&lane, Duration::ZERO).await;
        }
        assert!(count().len() == 4 && !lane.is_slow());
    }

    #[tokio::test(start_paused = true)]
    async fn what_takes_long_for_one_cluster_is_not_waited_for_by_another() {
        let lanes = Lanes::new(2, 1, SECOND);
        let [endless, other] = [lanes.lane(), lanes.lane()];
        once(&other, Duration::ZERO).await;
        let first = endless.enter().await;
        advance(2 * SECOND).await;
        drop(first);
        let _second = endless.enter().await;
        let (mut third, mut fourth) = (Box::pin(endless.enter()), Box::pin(endless.enter()));
        assert!((&mut third).now_or_never().is_none() && (&mut fourth).now_or_never().is_none());
        assert!(other.enter().now_or_never().is_some(), "it waits behind one that waits by itself");
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_do_not_hold_up_the_first_of_one_that_is_new() {
        let lanes = Lanes::new(8, 1, SECOND);
        let hanging = slow(&lanes, 2);
        let held: Vec<_> = hanging.iter().map(|lane| lane.enter().now_or_never().expect("a place")).collect();
        assert!(slow(&lanes, 1)[0].enter().now_or_never().is_none(), "two places are all that they have");
        let new = lanes.lane();
        let first = new.enter().now_or_never().expect("it is not known to be slow");
        advance(2 * SECOND).await;
        drop(first);
        assert!(new.enter().now_or_never().is_none(), "now it is");
        drop(held);
        for _ in 0..3 {
            once(&new, Duration::ZERO).await;
        }
        let _held: Vec<_> = hanging.iter().map(|lane| lane.enter().now_or_never().expect("a place")).collect();
        once(&new, Duration::ZERO).await;
    }

    #[tokio::test(start_paused = true)]
    async fn clusters_take_turns() {
        let lanes = Lanes::new(1, 1, SECOND);
        let [many, few] = [lanes.lane(), lanes.lane()];
        let held = few.enter().await;
        let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(many.enter())).collect();
        assert!(waiting.iter_mut().all(|one| one.now_or_never().is_none()));
        let mut next = Box::pin(few.enter());
        drop(held);
        let first = waiting.remove(0).await;
        assert!((&mut next).now_or_never().is_none());
        drop(first);
        assert!(next.now_or_never().is_some(), "before the other nine of the first");
    }
}
