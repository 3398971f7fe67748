//! What is told of a work, from what became of its objects.

use delivery::condition;
use delivery::feedback;
use delivery::identity::Identity;
use delivery::manifests::Manifest;
use delivery::rules::{self, Evaluator};
use delivery::work::{
    Availability, ConditionRule, Failed, FeedbackRule, Index, ManifestCondition, ManifestConfig, ManifestWorkStatus,
    ResourceMeta, Room, aggregate, all_applied, applied, available, default_progressing, has_progressing_rule, merged,
    options, prune,
};
use serde_json::Value as Json;
use time::OffsetDateTime;

/// What is new of an object.
#[derive(Debug)]
pub struct News {
    pub result: Result<(), Failed>,
    pub availability: Availability,
    pub observed: Option<Json>,
}

/// A manifest, and what is new of it.
pub struct Entry {
    pub meta: ResourceMeta,
    pub identity: Identity,
    /// None: it was not looked at.
    pub news: Option<News>,
}

pub struct Telling {
    pub before: ManifestWorkStatus,
    pub generation: i64,
    pub configs: Vec<ManifestConfig>,
    /// In the order of the manifests.
    pub entries: Vec<Entry>,
    /// Whether it is of a `ManifestWorkReplicaSet`.
    pub is_of_set: bool,
}

// === impl Entry ===

impl Entry {
    pub fn new(manifest: &Manifest, news: Option<News>) -> Self {
        Self { meta: ResourceMeta::from(manifest), identity: manifest.identity(), news }
    }
}

// === impl Telling ===

impl Telling {
    /// Whether that takes a while: rules may count to millions.
    pub fn is_costly(&self) -> bool {
        self.configs.iter().any(|config| !config.condition_rules.is_empty() || !config.feedback_rules.is_empty())
    }

    /// The status.
    pub fn status(mut self, now: OffsetDateTime) -> ManifestWorkStatus {
        let (mut evaluator, mut room) = (Evaluator::default(), Room::default());
        let entries = std::mem::take(&mut self.entries);
        let identities: Vec<Identity> = entries.iter().map(|entry| entry.identity.clone()).collect();
        let before = std::mem::take(&mut self.before);
        let index = Index::new(&before.resource_status.manifests);
        let mut manifests: Vec<ManifestCondition> =
            entries.into_iter().map(|entry| self.manifest(&index, entry, &mut evaluator, now)).collect();
        for manifest in &mut manifests {
            room.fit(manifest, now);
        }
        let mut conditions = before.conditions;
        for one in all_applied(&manifests, self.generation).into_iter().chain(aggregate(&manifests, self.generation)) {
            condition::set(&mut conditions, one, now);
        }
        prune(&mut conditions, self.generation);
        if self.is_of_set && !has_progressing_rule(&self.configs, &identities) {
            let progressing = default_progressing(&conditions, self.generation);
            condition::set(&mut conditions, progressing, now);
        }
        let mut status = ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() };
        status.resource_status.manifests = manifests;
        status
    }

    fn manifest(
        &self,
        index: &Index<'_>,
        entry: Entry,
        evaluator: &mut Evaluator,
        now: OffsetDateTime,
    ) -> ManifestCondition {
        let known = index.find(&entry.meta);
        let Some(news) = entry.news else {
            let known = known.cloned().unwrap_or_default();
            return ManifestCondition { resource_meta: entry.meta, ..known };
        };
        let applied = applied(news.result.as_ref().err().map_or(Ok(()), Err), self.generation);
        let new = ManifestCondition { resource_meta: entry.meta, conditions: vec![applied], ..Default::default() };
        let known: Vec<ManifestCondition> = known.cloned().into_iter().collect();
        let Some(mut manifest) = merged(&known, vec![new], now).pop() else { return ManifestCondition::default() };
        condition::set(&mut manifest.conditions, available(&news.availability), now);
        // What is not there says nothing, and what it said stays, as upstream has it.
        if let Some(object) = &news.observed {
            self.tell_of(object, &entry.identity, &mut manifest, evaluator, now);
        }
        prune(&mut manifest.conditions, self.generation);
        manifest
    }

    fn tell_of(
        &self,
        object: &Json,
        identity: &Identity,
        manifest: &mut ManifestCondition,
        evaluator: &mut Evaluator,
        now: OffsetDateTime,
    ) {
        let chosen = options(identity, &self.configs);
        let asked: Vec<feedback::Rule> = chosen.feedback_rules.iter().filter_map(FeedbackRule::rule).collect();
        let found = (!asked.is_empty()).then(|| feedback::read(object, &asked, None));
        delivery::work::feedback(manifest, found, now);
        let asked: Vec<rules::Rule> = chosen.condition_rules.iter().map(ConditionRule::rule).collect();
        for one in evaluator.evaluate(object, &asked, self.generation) {
            condition::set(&mut manifest.conditions, one, now);
        }
    }
}
