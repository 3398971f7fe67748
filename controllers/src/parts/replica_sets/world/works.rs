//! The works of a set. Most have the same spec, which is held once.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use delivery::condition::{Condition, Status, find, remove};
use delivery::work::replica_set::{ReplicaSet, Work, differing};
use delivery::work::{default_progressing, kind};
use serde_json::Value;
use time::OffsetDateTime;

use crate::wakes::Key;

/// Number of specs kept to compare with those of the next works: the template, and some before it.
const SPECS: usize = 8;

/// By cluster and name.
#[derive(Default)]
pub struct Works {
    all: BTreeMap<Key, Work>,
    template: Option<Arc<Value>>,
    /// Whether `Progressing` follows from `Applied` and `Available` if it is not reported.
    is_told_by_default: bool,
    /// The latest comes last; and whether it is the template.
    specs: Vec<(Arc<Value>, bool)>,
    /// For works whose `Progressing` is not reported.
    since: HashMap<Key, Since>,
}

// === impl Works ===

impl Works {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub fn get(&self, key: &Key) -> Option<&Work> {
        self.all.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Work> {
        self.all.values()
    }

    /// Compares all works with the template of their set; none if the set does not exist.
    pub fn follow(&mut self, set: Option<&ReplicaSet>, needs_rules: bool, now: OffsetDateTime) {
        let is_told_by_default = set.is_some_and(|set| !needs_rules && !set.has_progressing_rule());
        if is_told_by_default != self.is_told_by_default {
            self.is_told_by_default = is_told_by_default;
            for (key, work) in &mut self.all {
                tell(&mut self.since, is_told_by_default, (key, work), now);
            }
        }
        let template = set.map(|set| Arc::clone(&set.template));
        if template == self.template {
            return;
        }
        (self.template, self.specs) = (template, Vec::new());
        let mut judged: HashMap<*const Value, bool> = HashMap::new();
        for work in self.all.values_mut() {
            let judge = || self.template.as_ref().is_some_and(|template| !differing(&work.spec, template));
            work.is_current = *judged.entry(Arc::as_ptr(&work.spec)).or_insert_with(judge);
        }
    }

    pub fn put(&mut self, key: Key, mut object: Value, now: OffsetDateTime) {
        let (spec, is_current) = self.spec(object["spec"].take());
        let mut work = Work::read(&object, spec, is_current);
        tell_anew(&mut self.since, self.is_told_by_default, (&key, &mut work), now);
        self.all.insert(key, work);
    }

    pub fn remove(&mut self, key: &Key) {
        self.all.remove(key);
        self.since.remove(key);
    }

    fn spec(&mut self, spec: Value) -> (Arc<Value>, bool) {
        if let Some((known, is_current)) = self.specs.iter().find(|(known, _)| **known == spec) {
            return (Arc::clone(known), *is_current);
        }
        let is_current = self.template.as_ref().is_some_and(|template| !differing(&spec, template));
        let spec = match &self.template {
            Some(template) if **template == spec => Arc::clone(template),
            _ => Arc::new(spec),
        };
        if self.specs.len() == SPECS {
            self.specs.remove(0);
        }
        self.specs.push((Arc::clone(&spec), is_current));
        (spec, is_current)
    }
}

/// The state of a `Progressing` that is not reported: its generation, whether it is True, and since
/// when.
type Since = (i64, bool, OffsetDateTime);

/// Adds the default `Progressing` to a work, or removes it.
fn tell(since: &mut HashMap<Key, Since>, is_default: bool, (key, work): (&Key, &mut Work), now: OffsetDateTime) {
    if since.contains_key(key) {
        remove(&mut work.conditions, kind::PROGRESSING);
    }
    tell_anew(since, is_default, (key, work), now);
}

/// The same for a work exactly as the hub has it: an agent of upstream's reports nothing without a
/// rule.
fn tell_anew(since: &mut HashMap<Key, Since>, is_default: bool, (key, work): (&Key, &mut Work), now: OffsetDateTime) {
    if !is_default || find(&work.conditions, kind::PROGRESSING).is_some() {
        since.remove(key);
        return;
    }
    let told = default_progressing(&work.conditions, work.generation);
    let (generation, is_true) = (work.generation, told.status == Status::True);
    let known = since.get(key).filter(|known| (known.0, known.1) == (generation, is_true));
    let began = known.map_or_else(|| began(work).map_or(now, |began| began.min(now)), |known| known.2);
    since.insert(key.clone(), (generation, is_true, began));
    work.conditions.push(Condition { last_transition_time: Some(began), ..told });
}

/// Since when a work has its present state, from data on the hub, so that another process computes
/// the same: the work's last write, or the last change of the conditions that `Progressing` follows
/// from.
fn began(work: &Work) -> Option<OffsetDateTime> {
    let moved = [kind::APPLIED, kind::AVAILABLE].into_iter().filter_map(|kind| find(&work.conditions, kind));
    moved.filter_map(|one| one.last_transition_time).chain(work.written).max()
}
