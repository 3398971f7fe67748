//! The state of each object, for metrics and `/debug/sources`, and the wait before its next try.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use net::backoff::Backoff;
use parking_lot::Mutex;
use register::claims::Object;
use serde::Serialize;
use tokio::time::Instant;

use crate::calls::now_text;

/// In the words of `…_source_objects{state}` and `/debug/sources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    Registered,
    /// Another object has the name.
    Taken,
    Refused,
    Paused,
    Waiting,
}

/// The report about one object.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub source: &'static str,
    /// `group/Kind/namespace/name`.
    pub object: String,
    pub cluster: String,
    pub state: Stage,
    /// Why it is not registered.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Clusters that it registered by other names: they stay, and nothing follows them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub former_names: BTreeSet<String>,
    /// Time of this process's last write, in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_write: Option<String>,
    #[serde(skip)]
    pub reference: ObjectReference,
    #[serde(skip)]
    failures: u32,
    /// Time at which a change was first seen that is not written yet.
    #[serde(skip)]
    pub since: Option<Instant>,
}

#[derive(Debug, Default)]
pub struct Reports(Mutex<HashMap<Object, Report>>);

// === impl Stage ===

impl Stage {
    pub const ALL: [Self; 5] = [Self::Registered, Self::Taken, Self::Refused, Self::Paused, Self::Waiting];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Registered => "registered",
            Self::Taken => "taken",
            Self::Refused => "refused",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
        }
    }
}

// === impl Reports ===

impl Reports {
    /// Records that an object was seen.
    pub fn see(&self, object: &Object, cluster: &str, reference: ObjectReference) {
        let mut reports = self.0.lock();
        let report = reports.entry(object.clone()).or_insert_with(|| Report {
            source: object.source,
            object: object.reference.clone(),
            cluster: String::new(),
            state: Stage::Waiting,
            reason: "not read yet".to_owned(),
            former_names: BTreeSet::new(),
            last_write: None,
            reference: ObjectReference::default(),
            failures: 0,
            since: None,
        });
        cluster.clone_into(&mut report.cluster);
        report.reference = reference;
        report.since.get_or_insert_with(Instant::now);
    }

    /// Records a change of something else that the object depends on.
    pub fn changed(&self, object: &Object) {
        if let Some(report) = self.0.lock().get_mut(object) {
            report.since.get_or_insert_with(Instant::now);
        }
    }

    /// Sets the state of an object. True if the state or the reason is new.
    pub fn settle(&self, object: &Object, state: Stage, reason: &str) -> bool {
        let mut reports = self.0.lock();
        let Some(report) = reports.get_mut(object) else { return false };
        let is_news = report.state != state || report.reason != reason;
        report.state = state;
        reason.clone_into(&mut report.reason);
        report.failures = 0;
        report.since = None;
        is_news
    }

    /// Records a write of the object's Secret now. Returns the time since the change was first
    /// seen.
    pub fn written(&self, object: &Object) -> Option<Duration> {
        let mut reports = self.0.lock();
        let report = reports.get_mut(object)?;
        report.last_write = Some(now_text());
        report.since.take().map(|since| since.elapsed())
    }

    /// Records a failed try. Returns the wait before the next one. Without `state`, the state
    /// stays.
    pub fn failed(&self, object: &Object, state: Option<Stage>, reason: &str) -> Duration {
        let mut reports = self.0.lock();
        let Some(report) = reports.get_mut(object) else { return Backoff::OBJECT.longest };
        report.failures = report.failures.saturating_add(1);
        report.state = state.unwrap_or(report.state);
        reason.clone_into(&mut report.reason);
        Backoff::OBJECT.wait(report.failures - 1)
    }

    /// Records whether `name` is a former one of the object's cluster.
    pub fn former(&self, object: &Object, name: &str, is_former: bool) {
        let mut reports = self.0.lock();
        let Some(report) = reports.get_mut(object) else { return };
        if is_former {
            report.former_names.insert(name.to_owned());
        } else {
            report.former_names.remove(name);
        }
    }

    /// Number of former names by source.
    pub fn formers(&self) -> BTreeMap<&'static str, i64> {
        let mut formers = BTreeMap::new();
        for report in self.0.lock().values() {
            let count = i64::try_from(report.former_names.len()).unwrap_or(i64::MAX);
            *formers.entry(report.source).or_default() += count;
        }
        formers
    }

    pub fn forget(&self, object: &Object) {
        self.0.lock().remove(object);
    }

    /// Keeps only the reports about such objects.
    pub fn retain(&self, is_kept: impl Fn(&Object) -> bool) {
        self.0.lock().retain(|object, _| is_kept(object));
    }

    pub fn reference(&self, object: &Object) -> Option<ObjectReference> {
        self.0.lock().get(object).map(|report| report.reference.clone())
    }

    /// All reports, sorted.
    pub fn list(&self) -> Vec<Report> {
        let mut reports: Vec<_> = self.0.lock().values().cloned().collect();
        reports.sort_by(|a, b| (a.source, &a.object).cmp(&(b.source, &b.object)));
        reports
    }

    /// Number of objects by source and state.
    pub fn counts(&self) -> HashMap<(&'static str, Stage), i64> {
        let mut counts = HashMap::new();
        for report in self.0.lock().values() {
            *counts.entry((report.source, report.state)).or_default() += 1;
        }
        counts
    }

    pub fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object() -> Object {
        Object::new("capi", ["cluster.x-k8s.io", "Cluster"], "n", "c1")
    }

    #[test]
    fn waits_grow_until_it_succeeds() {
        let reports = Reports::default();
        reports.see(&object(), "c1", ObjectReference::default());
        let waits: Vec<_> = (0..10).map(|_| reports.failed(&object(), None, "timeout").as_secs_f64()).collect();
        assert!(waits[0] <= 1.0 && waits[9] >= 150.0 && waits[9] <= 300.0, "{waits:?}");
        assert!(reports.settle(&object(), Stage::Registered, ""));
        assert!(reports.failed(&object(), None, "timeout").as_secs_f64() <= 1.0, "from the start again");
    }

    #[test]
    fn news_is_told_once() {
        let reports = Reports::default();
        assert!(!reports.settle(&object(), Stage::Refused, "why"), "an object that was never seen");
        reports.see(&object(), "c1", ObjectReference::default());
        assert!(reports.settle(&object(), Stage::Refused, "why"));
        assert!(!reports.settle(&object(), Stage::Refused, "why"));
        assert!(reports.settle(&object(), Stage::Refused, "another"));
        assert_eq!(reports.counts()[&("capi", Stage::Refused)], 1);
    }

    #[test]
    fn a_write_is_timed_from_the_first_sight() {
        let reports = Reports::default();
        reports.see(&object(), "c1", ObjectReference::default());
        reports.see(&object(), "c1", ObjectReference::default());
        assert!(reports.written(&object()).is_some());
        assert!(reports.written(&object()).is_none(), "no change was seen since");
        reports.changed(&object());
        assert!(reports.written(&object()).is_some());
        assert!(reports.list()[0].last_write.as_deref().is_some_and(|time| time.ends_with('Z')));
    }
}
