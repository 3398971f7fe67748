//! A Placement as last seen, prepared for a run.

use std::sync::Arc;

use placement::Prepared;
use placement::prepared::{is_at_rest, read};
use serde_json::Value;
use time::OffsetDateTime;

use super::{ForeignWrites, is_older, key};
use crate::parts::placement::caused::CausedRuns;
use crate::parts::placement::status::{has_ours, writer};
use crate::wakes::Key;

/// Most steps of a quick run, which takes a few milliseconds.
const FEW_STEPS: u64 = 100_000;

pub struct ObservedPlacement {
    pub key: Key,
    pub uid: String,
    pub version: String,
    pub prepared: Arc<Prepared>,
    /// Number of rules that clusters are checked against, at least one.
    pub rules: usize,
    /// Why the Placement cannot be scheduled at all.
    pub unreadable: Option<String>,
    pub status: Value,
    /// The status fields that this replica wrote last, or is writing.
    pub intended: Value,
    pub foreign_writes: ForeignWrites,
    /// Number of changes of its input.
    pub inputs: u64,
    /// The last run's warning.
    pub warned: String,
    /// Time of the last run that a change caused, for Placements with expressions.
    pub ran_at: Option<OffsetDateTime>,
    /// Limits the runs that changes elsewhere cause, for Placements without expressions.
    pub caused: CausedRuns,
    /// Steps that its expressions took in its last run.
    pub steps: Option<u64>,
    /// Input, and number of its runs that wrote, when the last run had to wait for a slot.
    pub paused: Option<(u64, usize)>,
    /// Number of the last list of this kind that began before the Placement was seen.
    pub seen_in: u32,
}

// === impl ObservedPlacement ===

impl ObservedPlacement {
    pub fn new(object: &Value) -> Self {
        let (prepared, unreadable) = read(object);
        Self {
            key: key(object),
            uid: text(object, "uid"),
            version: text(object, "resourceVersion"),
            prepared: Arc::new(prepared),
            rules: rules(&object["spec"]),
            unreadable,
            status: object["status"].clone(),
            intended: Value::Null,
            foreign_writes: ForeignWrites::default(),
            inputs: 0,
            warned: String::new(),
            ran_at: None,
            caused: CausedRuns::edited(),
            steps: None,
            paused: None,
            seen_in: 0,
        }
    }

    /// Takes in a change. True if the Placement must run again, because its spec or our status
    /// fields are not as known. With `is_anew`, the version does not count.
    pub fn update(&mut self, object: &Value, now: OffsetDateTime, is_anew: bool) -> bool {
        let version = text(object, "resourceVersion");
        if !is_anew && (version == self.version || is_older(Some(&version), &self.version)) {
            return false;
        }
        self.version = version;
        let status = &object["status"];
        let is_as_before = has_ours(status, &self.status) && has_ours(&self.status, status);
        let is_told = is_as_before || !self.intended.is_null() && has_ours(status, &self.intended);
        self.status = status.clone();
        let is_same = self.uid == text(object, "uid")
            && self.prepared.generation == object["metadata"]["generation"].as_i64().unwrap_or_default()
            && self.prepared.is_at_rest == is_at_rest(object);
        if !is_same {
            let Self { inputs, ran_at, seen_in, .. } = *self;
            *self = Self { inputs, ran_at, seen_in, ..Self::new(object) };
        } else if !is_told {
            self.foreign_writes.seen(writer(&object["metadata"]), now);
        }
        !(is_told && is_same)
    }

    /// Whether a run drops clusters that it no longer chooses. A Placement that cannot be
    /// evaluated, or that is switched off, keeps its decisions.
    pub fn may_lose_clusters(&self) -> bool {
        let Prepared { is_at_rest, predicates, tolerations, prioritizers, groups, .. } = &*self.prepared;
        let is_right = predicates.is_ok() && tolerations.is_ok() && prioritizers.is_ok() && groups.is_ok();
        is_right && !is_at_rest && self.unreadable.is_none()
    }

    /// Whether the last run took few steps; false if it has not run yet.
    pub fn took_few_steps(&self) -> bool {
        self.steps.is_some_and(|steps| steps <= FEW_STEPS)
    }

    /// Whether the Placement uses a set that is bound in its namespace.
    pub fn looks_at(&self, set: &str) -> bool {
        let sets = &self.prepared.cluster_sets;
        sets.is_empty() || sets.iter().any(|name| name == set)
    }

    /// Whether it has expressions, which see whole clusters and all scores.
    pub fn has_expressions(&self) -> bool {
        self.prepared.has_expressions()
    }

    /// Whether it uses an add-on's scores of a resource.
    pub fn asks_for(&self, resource: &str) -> bool {
        self.prepared.score_resources().any(|asked| asked == resource)
    }
}

/// An upper bound at any nesting: each rule is an object or an entry of a list.
fn rules(spec: &Value) -> usize {
    match spec {
        Value::Object(fields) => fields.values().map(rules).fold(1, usize::saturating_add),
        Value::Array(items) => items.iter().map(rules).fold(1, usize::saturating_add),
        _ => 1,
    }
}

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or_default().to_owned()
}
