//! Delays rechecks after changes, until the hub's own authorizer has seen the change too, and paces
//! them, so that a change that concerns all clusters does not cause reviews of all of them at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use foldhash::quality::RandomState;
use tokio::time::Instant;
use tunnel::ClusterName;

/// Wait for the hub's authorizers, which follow roles by watches of their own. With the review
/// itself and the pace below, for up to some three hundred linked clusters that change at once,
/// this stays below the five seconds within which a withdrawn right ends links.
pub(super) const SETTLE: Duration = Duration::from_secs(1);
/// Time between two linked clusters: a hundred a second, which costs less than the regular rechecks
/// of 5,000 agents.
pub(super) const PACE: Duration = Duration::from_millis(10);
/// Most waiting changes of named clusters. More of them become one recheck of all clusters.
const MOST: usize = 8_192;

/// Changes that wait for a recheck.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    named: VecDeque<(Instant, ClusterName)>,
    /// Last due time of each waiting cluster.
    due: HashMap<ClusterName, Instant, RandomState>,
    /// Time at which all clusters must be rechecked.
    all: Option<Instant>,
    /// Clusters left in the current recheck of all, and those of the next one. The current one
    /// always ends first, because otherwise endless changes would restart it forever.
    sweep: Vec<ClusterName>,
    next_sweep: Vec<ClusterName>,
    /// Whether the last cluster was a named one: then the next one is from the recheck of all.
    was_named: bool,
    /// No cluster is due before this time.
    next: Option<Instant>,
}

/// A recheck that is due.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    One(ClusterName),
    /// All clusters: the caller passes them to [`Waiting::sweep`].
    All,
}

// === impl Waiting ===

impl Waiting {
    /// Adds a change of one cluster. Changes that come together cause one recheck.
    pub(super) fn add(&mut self, cluster: &ClusterName) {
        let due = Instant::now() + SETTLE;
        if self.due.get(cluster).is_some_and(|known| *known + SETTLE / 2 >= due) {
            return;
        }
        if self.named.len() >= MOST {
            return self.add_all();
        }
        self.due.insert(cluster.clone(), due);
        self.named.push_back((due, cluster.clone()));
    }

    pub(super) fn add_all(&mut self) {
        // The first time counts: endless changes must not delay it forever.
        self.all.get_or_insert_with(|| Instant::now() + SETTLE);
    }

    /// Rechecks `clusters`, after those of the current recheck of all.
    pub(super) fn sweep(&mut self, clusters: Vec<ClusterName>) {
        if self.sweep.is_empty() { self.sweep = clusters } else { self.next_sweep = clusters }
    }

    /// Time of the next due recheck; None if none waits.
    pub(super) fn at(&self) -> Option<Instant> {
        let named = self.named.front().map(|(due, _)| *due);
        let swept = (!self.sweep.is_empty()).then(Instant::now);
        let first = [named, self.all, swept].into_iter().flatten().min()?;
        Some(self.next.map_or(first, |next| first.max(next)))
    }

    /// Takes a due recheck. Named clusters and the recheck of all alternate, so that neither waits
    /// for the other's end.
    pub(super) fn take(&mut self) -> Option<Due> {
        let now = Instant::now();
        if self.next.is_some_and(|next| next > now) {
            return None;
        }
        if self.all.is_some_and(|all| all <= now) {
            self.all = None;
            return Some(Due::All);
        }
        let is_due = self.named.front().is_some_and(|(due, _)| *due <= now);
        self.was_named = is_due && (self.sweep.is_empty() || !self.was_named);
        let cluster = if self.was_named { self.take_named()? } else { self.take_swept()? };
        Some(Due::One(cluster))
    }

    /// Delays the next recheck, because this one asks the hub. A cluster without links costs the
    /// hub nothing, so it causes no delay.
    pub(super) fn paced(&mut self) {
        self.next = Some(Instant::now() + PACE);
    }

    fn take_named(&mut self) -> Option<ClusterName> {
        let (due, cluster) = self.named.pop_front()?;
        if self.due.get(&cluster) == Some(&due) {
            self.due.remove(&cluster);
        }
        Some(cluster)
    }

    fn take_swept(&mut self) -> Option<ClusterName> {
        let cluster = self.sweep.pop();
        if self.sweep.is_empty() {
            self.sweep = std::mem::take(&mut self.next_sweep);
        }
        cluster
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep_until};

    use super::*;

    fn name(name: &str) -> ClusterName {
        ClusterName::parse(name).unwrap()
    }

    async fn next(waiting: &mut Waiting) -> Option<Due> {
        sleep_until(waiting.at()?).await;
        let due = waiting.take();
        if matches!(due, Some(Due::One(_))) {
            waiting.paced();
        }
        due
    }

    #[tokio::test(start_paused = true)]
    async fn changes_that_come_together_are_one_and_later_ones_another() {
        let (mut waiting, started) = (Waiting::default(), Instant::now());
        waiting.add(&name("east"));
        advance(SETTLE / 4).await;
        waiting.add(&name("east"));
        assert_eq!(waiting.take(), None, "the hub may not know yet");
        advance(SETTLE / 2).await;
        waiting.add(&name("east"));
        assert_eq!(next(&mut waiting).await, Some(Due::One(name("east"))));
        assert_eq!(started.elapsed(), SETTLE);
        assert_eq!(next(&mut waiting).await, Some(Due::One(name("east"))));
        assert_eq!(next(&mut waiting).await, None);
        assert!(waiting.due.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_at_all_is_paced_and_named_ones_go_first() {
        let mut waiting = Waiting::default();
        waiting.add_all();
        assert_eq!(next(&mut waiting).await, Some(Due::All));
        waiting.sweep((0..500).map(|number| name(&format!("c{number}"))).collect());
        let started = Instant::now();
        waiting.add(&name("east"));
        let mut order = Vec::new();
        while let Some(due) = next(&mut waiting).await {
            order.push((due, started.elapsed()));
        }
        assert_eq!(order.len(), 501);
        let (_, at) = order.iter().find(|(due, _)| *due == Due::One(name("east"))).unwrap();
        assert!(*at <= SETTLE + PACE, "{at:?}");
        assert!(started.elapsed() >= PACE * 500, "{:?}", started.elapsed());
    }

    /// A recheck of all clusters ends, whatever else changes during it.
    #[tokio::test(start_paused = true)]
    async fn a_flood_of_changes_neither_restarts_a_look_at_all_nor_keeps_it_waiting() {
        const ALL: u32 = 200;
        let all = || (0..ALL).map(|number| name(&format!("c{number}"))).collect::<Vec<_>>();
        let mut waiting = Waiting::default();
        waiting.sweep(all());
        let (started, mut seen, mut looks, mut flood) =
            (Instant::now(), std::collections::HashSet::new(), 0_u32, 0_u32);
        while seen.len() < all().len() {
            // Roles that name clusters, and one without names, written repeatedly.
            waiting.add(&name(&format!("n{flood}")));
            waiting.add_all();
            flood += 1;
            match next(&mut waiting).await {
                Some(Due::All) => {
                    looks += 1;
                    waiting.sweep(all());
                }
                Some(Due::One(cluster)) if cluster.as_str().starts_with('c') => drop(seen.insert(cluster)),
                _ => {}
            }
            assert!(started.elapsed() < 4 * PACE * ALL, "{} after {:?}", seen.len(), started.elapsed());
        }
        assert!(looks > 1, "the flood is one");
        assert!(waiting.sweep.len() + waiting.next_sweep.len() <= 2 * all().len());
    }
}
