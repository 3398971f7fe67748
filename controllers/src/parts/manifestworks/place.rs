//! One cluster that is delivered to: how it is reached, what is known of it, and whose turn it is.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use api::cluster_name::ClusterName;
use net::backoff::Backoff;
use net::permit::Permit;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::discovery::Kinds;
use super::member::Member;
use super::reviews::Verdicts;
use super::sights::Sights;

/// Works of one cluster that are worked on at a time.
const MOST: usize = 4;
/// Between tries of a cluster that does not answer.
const AWAY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(1));

/// Between tries for which somebody's word is the reason.
const BETWEEN_TRIES: Duration = Duration::from_secs(15);

pub struct Place {
    pub member: Member,
    pub kinds: Kinds,
    pub sights: Sights,
    pub verdicts: Verdicts,
    at_work: Arc<AtomicUsize>,
    /// Works that wait for a turn.
    waiting: Mutex<BTreeSet<String>>,
    away: Mutex<Away>,
}

/// Whether it answers.
#[derive(Debug, Default)]
struct Away {
    /// In a row.
    failures: u32,
    /// When it is tried again.
    until: Option<Instant>,
    /// Why it was away last.
    cause: String,
    /// When somebody said that it is worth a try.
    tried: Option<Instant>,
}

/// Those that are delivered to. None is kept that is not.
#[derive(Default)]
pub struct Places(Mutex<HashMap<String, Arc<Place>>>);

// === impl Place ===

impl Place {
    fn new(member: Member) -> Self {
        Self {
            member,
            kinds: Kinds::default(),
            sights: Sights::default(),
            verdicts: Verdicts::default(),
            at_work: Arc::default(),
            waiting: Mutex::default(),
            away: Mutex::default(),
        }
    }

    /// A turn for a work; none: it gets one when another's ends.
    pub fn turn(&self, work: &str) -> Option<Permit<AtomicUsize>> {
        // Before: one that ends meanwhile finds it.
        if self.waiting.lock().insert(work.to_owned()) {
            self.member.metrics.waits(true);
        }
        // Of one that does not answer, one is enough to find out.
        let most = if self.away.lock().failures > 0 { 1 } else { MOST };
        let permit = Permit::of(&self.at_work, most)?;
        if self.waiting.lock().remove(work) {
            self.member.metrics.waits(false);
        }
        Some(permit)
    }

    /// Whose turn is next, now that one has ended.
    pub fn next(&self) -> Option<String> {
        let next = self.waiting.lock().pop_first();
        if next.is_some() {
            self.member.metrics.waits(false);
        }
        next
    }

    /// Until it is tried again.
    pub fn rest(&self) -> Option<Duration> {
        let until = self.away.lock().until?;
        until.checked_duration_since(Instant::now()).filter(|rest| !rest.is_zero())
    }

    /// It did not answer. Returns when it is tried again, and whether the cause is news. Those that
    /// were asked at the same time count once.
    pub fn is_away(&self, at_least: Duration, cause: &str) -> (Duration, bool) {
        let mut away = self.away.lock();
        let is_news = away.cause != cause;
        if is_news {
            cause.clone_into(&mut away.cause);
        }
        let now = Instant::now();
        if let Some(rest) = away.until.and_then(|until| until.checked_duration_since(now)).filter(|one| !one.is_zero())
        {
            return (rest, is_news);
        }
        let wait = AWAY.wait(away.failures).max(at_least.min(AWAY.longest));
        away.failures = away.failures.saturating_add(1);
        away.until = Some(now + wait);
        (wait, is_news)
    }

    /// It answered. Returns whether that is news.
    pub fn is_back(&self) -> bool {
        std::mem::take(&mut *self.away.lock()).failures > 0
    }

    /// It is worth a try: something is said of it. Returns whether it is tried: what is said each
    /// second is no reason for a try each second.
    pub fn try_now(&self) -> bool {
        let (mut away, now) = (self.away.lock(), Instant::now());
        if away.tried.is_some_and(|tried| now < tried + BETWEEN_TRIES) {
            return false;
        }
        (away.until, away.tried) = (None, Some(now));
        true
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for _ in 0..self.waiting.get_mut().len() {
            self.member.metrics.waits(false);
        }
    }
}

// === impl Places ===

impl Places {
    /// The place of a cluster, made with `member` where there was none.
    pub fn of(&self, cluster: &ClusterName, member: impl FnOnce() -> Member) -> Arc<Place> {
        let mut places = self.0.lock();
        let place = places.entry(cluster.as_str().to_owned()).or_insert_with(|| Arc::new(Place::new(member())));
        Arc::clone(place)
    }

    /// That of a cluster that had work.
    pub fn known(&self, cluster: &str) -> Option<Arc<Place>> {
        self.0.lock().get(cluster).cloned()
    }

    /// The cluster is not delivered to: its watches end.
    pub fn forget(&self, cluster: &str) {
        if let Some(place) = self.0.lock().remove(cluster) {
            place.member.close();
        }
    }
}

#[cfg(test)]
mod tests;
