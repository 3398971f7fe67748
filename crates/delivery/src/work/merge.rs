//! What is new of manifests, put over what was told before.

use std::collections::HashMap;

use time::OffsetDateTime;

use super::status::{ManifestCondition, ResourceMeta};
use crate::condition::{self, Condition};

/// The entries `new`, each with the conditions and values that its manifest had before. It is
/// found in its place, or by its identity in another place, if that is there once.
pub fn merged(old: &[ManifestCondition], new: Vec<ManifestCondition>, now: OffsetDateTime) -> Vec<ManifestCondition> {
    let places: HashMap<&ResourceMeta, &ManifestCondition> = old.iter().map(|one| (&one.resource_meta, one)).collect();
    let mut elsewhere: HashMap<ResourceMeta, Option<&ManifestCondition>> = HashMap::new();
    for one in old {
        let known = elsewhere.entry(anywhere(&one.resource_meta));
        known.and_modify(|known| *known = None).or_insert(Some(one));
    }
    // What has no identity is found only in its place.
    elsewhere.remove(&ResourceMeta::default());
    let merge = |new: ManifestCondition| {
        let place = places.get(&new.resource_meta).copied();
        let known = place.or_else(|| elsewhere.get(&anywhere(&new.resource_meta)).copied().flatten());
        one(known, new, now)
    };
    new.into_iter().map(merge).collect()
}

fn anywhere(meta: &ResourceMeta) -> ResourceMeta {
    ResourceMeta { ordinal: 0, ..meta.clone() }
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
