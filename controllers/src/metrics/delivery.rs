//! `cluster_gateway_delivery_*`: the `ManifestWorks` that this replica delivers.

use std::collections::HashMap;
use std::sync::Arc;

use delivery::condition;
use delivery::work::{ManifestCondition, ManifestWorkStatus, is_complete, kind};
use fleet::Kind;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use tokio::time::Instant;

use crate::wakes::Key;

const PREFIX: &str = "cluster_gateway_delivery";
/// Members' status codes that are counted individually. Others are counted by class, because a
/// member chooses its answers.
const CODES: [u16; 12] = [400, 401, 403, 404, 409, 413, 422, 429, 500, 502, 503, 504];

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Delivery {
    actions: Family<OfAction, Counter>,
    requests: Family<OfRequest, Counter>,
    objects: Family<OfState, Gauge>,
    contested: Gauge,
    foreign: Gauge,
    waiting: Gauge,
    kept: Gauge,
    beyond: Gauge,
    unwatched: Gauge,
    works: Arc<Mutex<HashMap<Key, ObservedWork>>>,
}

#[derive(Debug, Clone, Default)]
struct ObservedWork {
    state: WorkState,
    generation: Option<i64>,
    /// Since when it waits to be applied.
    since: Option<Instant>,
}

/// The state of a work's objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WorkState {
    applied: i64,
    failed: i64,
    contested: i64,
    /// Kept by another agent, or by another cluster's work.
    foreign: i64,
    /// The work is up to date, or is left to others.
    is_settled: bool,
}

/// An action on an object.
#[derive(Debug, Clone, Copy)]
pub enum Act {
    Create,
    Update,
    Apply,
    Patch,
    Delete,
}

/// The outcome of an action.
#[derive(Debug, Clone, Copy)]
pub enum Ended {
    Done,
    Conflict,
    Failed,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAction {
    action: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRequest {
    cluster: String,
    code: String,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfState {
    state: &'static str,
}

/// A work whose objects are not watched, counted until this is dropped.
#[derive(Debug)]
pub struct Unwatched(Gauge);

/// How long the oldest work waits, computed at each scrape.
#[derive(Debug)]
struct Oldest(Delivery);

// === impl WorkState ===

impl WorkState {
    /// `contested` is the number of objects that another writer changes back.
    pub fn of(status: &ManifestWorkStatus, generation: i64, contested: usize) -> Self {
        if is_complete(&status.conditions) {
            return Self::complete();
        }
        let manifests = &status.resource_status.manifests;
        let is_applied = |one: &&ManifestCondition| condition::is_true(&one.conditions, kind::APPLIED);
        let applied = manifests.iter().filter(is_applied).count();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        let told = condition::find(&status.conditions, kind::APPLIED);
        let is_settled = applied == manifests.len() && told.is_some_and(|one| one.observed_generation == generation);
        let (failed, contested) = (count(manifests.len() - applied), count(contested));
        Self { applied: count(applied), failed, contested, foreign: 0, is_settled }
    }

    /// Nothing more of it is applied.
    pub fn complete() -> Self {
        Self { is_settled: true, ..Self::default() }
    }

    /// Others keep it.
    pub fn foreign() -> Self {
        Self { is_settled: true, foreign: 1, ..Self::default() }
    }
}

// === impl Act ===

impl Act {
    fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Apply => "apply",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }
}

// === impl Ended ===

impl Ended {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Conflict => "conflict",
            Self::Failed => "failed",
        }
    }
}

// === impl Delivery ===

impl Delivery {
    pub fn register(registry: &mut Registry) -> Self {
        let delivery = Self::default();
        let name = |name: &str| format!("{PREFIX}_{name}");
        let Self { actions, requests, objects, contested, foreign, waiting, kept, beyond, unwatched, .. } =
            delivery.clone();
        registry.register(name("actions"), "Writes of objects of ManifestWorks to members", actions);
        registry.register(name("objects"), "Objects of ManifestWorks, by outcome", objects);
        registry.register(name("queue_depth"), "ManifestWorks that wait for their turn at their cluster", waiting);
        registry.register(
            name("contested_objects"),
            "Objects of ManifestWorks that another client keeps changing back",
            contested,
        );
        registry.register(
            name("foreign_works"),
            "ManifestWorks that other agents, or other clusters' works, keep on their members",
            foreign,
        );
        registry.register(name("kept_bytes"), "Bytes of ManifestWorks that are kept in memory", kept);
        registry.register(
            name("unkept_works"),
            "ManifestWorks that are read from the hub each time, since there is no more memory for them",
            beyond,
        );
        registry.register(
            name("unwatched_works"),
            "ManifestWorks whose objects are read from time to time, since there is no more memory to watch them",
            unwatched,
        );
        registry.register(name("member_requests"), "Requests to members, by the code of the answer", requests);
        registry.register_collector(Box::new(Oldest(delivery.clone())));
        delivery
    }

    pub fn acted(&self, act: Act, ended: Ended) {
        self.actions.get_or_create(&OfAction { action: act.as_str(), result: ended.as_str() }).inc();
    }

    /// Counts a request to a member. `failure` is the kind of failure if there was no answer.
    pub fn asked(&self, cluster: &str, failure: Option<Kind>) {
        let code = match failure {
            None => "2xx".to_owned(),
            Some(Kind::Answered(code) | Kind::Plain(code)) if CODES.contains(&code) => code.to_string(),
            Some(Kind::Answered(code) | Kind::Plain(code)) => format!("{}xx", (code / 100).min(9)),
            Some(Kind::Unanswered | Kind::Own) => "none".to_owned(),
            Some(Kind::Late) => "late".to_owned(),
        };
        self.requests.get_or_create(&OfRequest { cluster: cluster.to_owned(), code }).inc();
    }

    /// Sets the bytes of works in memory, and the number of works that are not in memory.
    pub fn keeps(&self, bytes: usize, beyond: usize) {
        self.kept.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.beyond.set(i64::try_from(beyond).unwrap_or(i64::MAX));
    }

    #[cfg(test)]
    pub fn unkept(&self) -> i64 {
        self.beyond.get()
    }

    /// Counts a work whose objects are not watched.
    pub fn unwatched(&self) -> Unwatched {
        self.unwatched.inc();
        Unwatched(self.unwatched.clone())
    }

    #[cfg(test)]
    pub fn unwatched_works(&self) -> i64 {
        self.unwatched.get()
    }

    /// A work starts or stops waiting for its turn.
    pub fn waits(&self, is_waiting: bool) {
        if is_waiting {
            self.waiting.inc();
        } else if self.waiting.get() > 0 {
            // Works that were waiting when all was cleared no longer count.
            self.waiting.dec();
        }
    }

    #[cfg(test)]
    pub fn waiting(&self) -> i64 {
        self.waiting.get()
    }

    /// A work must be applied at this generation.
    pub fn begin(&self, key: &Key, generation: i64) {
        let mut works = self.works.lock();
        let known = works.entry(key.clone()).or_default();
        if known.generation != Some(generation) {
            known.generation = Some(generation);
            known.since.get_or_insert_with(Instant::now);
        }
    }

    /// Sets the state of a work.
    pub fn settle(&self, key: &Key, state: WorkState) {
        let mut works = self.works.lock();
        let known = works.entry(key.clone()).or_default();
        let before = std::mem::replace(&mut known.state, state);
        known.since = if state.is_settled { None } else { known.since.or_else(|| Some(Instant::now())) };
        self.move_from(before, state);
    }

    /// Sets the number of a work's objects that another writer changes back.
    pub fn contested(&self, key: &Key, contested: usize) {
        let mut works = self.works.lock();
        let Some(known) = works.get_mut(key) else { return };
        let before = known.state;
        known.state.contested = i64::try_from(contested).unwrap_or(i64::MAX);
        self.move_from(before, known.state);
    }

    pub fn forget(&self, key: &Key) {
        let before = self.works.lock().remove(key).unwrap_or_default();
        self.move_from(before.state, WorkState::default());
    }

    /// A cluster no longer gets deliveries.
    pub fn forget_cluster(&self, cluster: &str) {
        let codes = CODES.iter().map(u16::to_string);
        let others = ["2xx", "1xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx", "9xx", "0xx", "none", "late"];
        for code in codes.chain(others.map(str::to_owned)) {
            self.requests.remove(&OfRequest { cluster: cluster.to_owned(), code });
        }
    }

    /// Another replica delivers, or none.
    pub fn clear(&self) {
        self.works.lock().clear();
        self.objects.clear();
        self.requests.clear();
        self.contested.set(0);
        self.foreign.set(0);
        self.waiting.set(0);
        self.unwatched.set(0);
        self.keeps(0, 0);
    }

    fn move_from(&self, before: WorkState, after: WorkState) {
        let change = |state: &'static str, by: i64| {
            if by != 0 {
                self.objects.get_or_create(&OfState { state }).inc_by(by);
            }
        };
        change("applied", after.applied - before.applied);
        change("failed", after.failed - before.failed);
        self.contested.inc_by(after.contested - before.contested);
        self.foreign.inc_by(after.foreign - before.foreign);
    }

    fn oldest(&self) -> f64 {
        let works = self.works.lock();
        let since = works.values().filter_map(|known| known.since).min();
        since.map_or(0.0, |since| since.elapsed().as_secs_f64())
    }
}

// === impl Unwatched ===

impl Drop for Unwatched {
    fn drop(&mut self) {
        // After everything was cleared, it no longer counts.
        if self.0.get() > 0 {
            self.0.dec();
        }
    }
}

// === impl Oldest ===

impl Collector for Oldest {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (name, help) = (format!("{PREFIX}_oldest_unapplied_seconds"), "How long the oldest ManifestWork waits");
        let oldest = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
        ConstGauge::new(self.0.oldest()).encode(oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_work_counts_as_it_was_settled_last() {
        let delivery = Delivery::register(&mut Registry::default());
        let count = |state| delivery.objects.get_or_create(&OfState { state }).get();
        let key = |name: &str| ("c".to_owned(), name.to_owned());
        let state =
            |applied, failed| WorkState { applied, failed, contested: failed, foreign: 0, is_settled: failed == 0 };
        delivery.begin(&key("a"), 1);
        assert!(delivery.oldest() > 0.0);
        delivery.settle(&key("a"), state(3, 1));
        delivery.settle(&key("b"), state(2, 0));
        assert_eq!((count("applied"), count("failed")), (5, 1));
        assert_eq!(delivery.contested.get(), 1);
        delivery.contested(&key("a"), 0);
        assert_eq!(delivery.contested.get(), 0, "it is over, and nothing else is to be told");
        delivery.settle(&key("c"), WorkState::foreign());
        assert_eq!(delivery.foreign.get(), 1);
        delivery.settle(&key("c"), state(0, 0));
        assert_eq!(delivery.foreign.get(), 0, "it was adopted");
        assert!(delivery.oldest() > 0.0, "one is not applied");
        delivery.settle(&key("a"), state(4, 0));
        assert!(delivery.oldest() == 0.0);
        delivery.begin(&key("a"), 1);
        assert!(delivery.oldest() == 0.0, "it is applied at that generation");
        delivery.begin(&key("a"), 2);
        assert!(delivery.oldest() > 0.0);
        delivery.forget(&key("b"));
        assert_eq!((count("applied"), count("failed")), (4, 0));
    }

    #[test]
    fn codes_of_members_are_few() {
        let delivery = Delivery::default();
        for code in 100..1000 {
            delivery.asked("c", Some(Kind::Answered(code)));
        }
        delivery.asked("c", None);
        let count =
            |code: &str| delivery.requests.get_or_create(&OfRequest { cluster: "c".into(), code: code.into() }).get();
        assert_eq!((count("404"), count("2xx"), count("4xx")), (1, 101, 92));
    }
}
