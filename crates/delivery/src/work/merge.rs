//! What is new of manifests, put over what was told before.

use time::OffsetDateTime;

use super::index::Index;
use super::status::ManifestCondition;
use crate::condition::{self, Condition};

/// The entries `new`, each with the conditions and values that its manifest had before.
pub fn merged(old: &[ManifestCondition], new: Vec<ManifestCondition>, now: OffsetDateTime) -> Vec<ManifestCondition> {
    let index = Index::new(old);
    new.into_iter().map(|new| one(index.find(&new.resource_meta), new, now)).collect()
}

fn one(known: Option<&ManifestCondition>, new: ManifestCondition, now: OffsetDateTime) -> ManifestCondition {
    let conditions = known.map(|known| known.conditions.clone()).unwrap_or_default();
    ManifestCondition {
        resource_meta: new.resource_meta,
        status_feedback: known.map(|known| known.status_feedback.clone()).unwrap_or_default(),
        conditions: conditions_merged(conditions, new.conditions, now),
    }
}

/// A condition of another generation is another one: it goes to the end, with the time now.
fn conditions_merged(old: Vec<Condition>, new: Vec<Condition>, now: OffsetDateTime) -> Vec<Condition> {
    let mut all = old;
    for one in new {
        let is_of_before = |known: &Condition| known.observed_generation != one.observed_generation;
        if condition::find(&all, &one.kind).is_some_and(is_of_before) {
            condition::remove(&mut all, &one.kind);
        }
        condition::set(&mut all, one, now);
    }
    all
}
