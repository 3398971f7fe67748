//! The status of a work, from the outcomes of its objects.

use std::sync::Arc;

use delivery::condition::{self, Condition};
use delivery::feedback;
use delivery::identity::Identity;
use delivery::manifests::Manifest;
use delivery::rules::{self, Evaluator};
use delivery::work::{
    Availability, BytesLeft, ConditionRule, Failed, FeedbackRule, Index, ManifestCondition, ManifestConfig,
    ManifestWorkSpec, ManifestWorkStatus, ResourceMeta, aggregate, all_applied, applied, available,
    has_progressing_rule, merged, options, prune, prune_others, set_default_progressing, take_default_progressing,
};
use parking_lot::Mutex;
use serde_json::Value as Json;
use time::OffsetDateTime;

/// Memory of a value besides its texts, in bytes, roughly.
const PLACE: usize = 80;

/// The new state of an object.
#[derive(Debug)]
pub struct News {
    pub result: Result<(), Failed>,
    pub availability: Availability,
    /// None if it does not exist, or its rules could not be evaluated.
    pub said: Option<Said>,
    /// A note for an applied object.
    pub note: Option<String>,
}

/// The results of the work's rules on an object.
#[derive(Debug, Default)]
pub struct Said {
    /// None if there are no rules for it.
    feedback: Option<feedback::Feedback>,
    conditions: Vec<Condition>,
}

/// An object on which rules are evaluated.
pub struct Asking {
    pub spec: Arc<ManifestWorkSpec>,
    pub identity: Identity,
    pub object: Json,
    pub generation: i64,
    /// Limit of a value without another type that is reported as JSON, in bytes.
    pub raw: Option<usize>,
    /// The evaluator of the pass, which bounds all rules of a work together.
    pub evaluator: Arc<Mutex<Evaluator>>,
}

// === impl Asking ===

impl Asking {
    /// Whether the evaluation may take long: rules may count to millions.
    pub fn is_costly(&self) -> bool {
        let chosen = options(&self.identity, &self.spec.manifest_configs);
        !chosen.condition_rules.is_empty() || !chosen.feedback_rules.is_empty()
    }

    pub fn said(&self) -> Said {
        let chosen = options(&self.identity, &self.spec.manifest_configs);
        let asked: Vec<feedback::Rule> = chosen.feedback_rules.iter().filter_map(FeedbackRule::rule).collect();
        let feedback = (!asked.is_empty()).then(|| feedback::read(&self.object, &asked, self.raw));
        let asked: Vec<rules::Rule> = chosen.condition_rules.iter().map(ConditionRule::rule).collect();
        let conditions = self.evaluator.lock().evaluate(&self.object, &asked, self.generation);
        Said { feedback, conditions }
    }
}

/// A manifest, and the new state of its object.
pub struct Entry {
    pub meta: ResourceMeta,
    pub identity: Identity,
    /// None if it was not processed.
    pub news: Option<News>,
}

pub struct Telling {
    pub before: ManifestWorkStatus,
    pub generation: i64,
    pub configs: Vec<ManifestConfig>,
    /// In the order of the manifests.
    pub entries: Vec<Entry>,
    /// Why objects that are no longer wanted are not removed.
    pub stays: Option<String>,
    /// Whether the work belongs to a `ManifestWorkReplicaSet`.
    pub is_of_set: bool,
    /// Whether a rollout waits for a rule, as in upstream.
    pub needs_rules: bool,
    /// The work is complete: nothing was applied, and the reported outcomes stay.
    pub is_complete: bool,
}

// === impl Said ===

impl Said {
    /// Memory in bytes, roughly.
    pub fn weighs(&self) -> usize {
        let value = |(name, value): &(String, feedback::Value)| match value {
            feedback::Value::String(text) | feedback::Value::JsonRaw(text) => PLACE + name.len() + text.len(),
            feedback::Value::Integer(_) | feedback::Value::Boolean(_) => PLACE + name.len(),
        };
        let feedback = self.feedback.iter().map(|one| {
            one.values.iter().map(value).sum::<usize>() + one.errors.iter().map(|why| PLACE + why.len()).sum::<usize>()
        });
        let condition = |one: &Condition| 2 * PLACE + one.kind.len() + one.reason.len() + one.message.len();
        feedback.sum::<usize>() + self.conditions.iter().map(condition).sum::<usize>()
    }
}

// === impl Entry ===

impl Entry {
    pub fn new(manifest: &Manifest, news: Option<News>) -> Self {
        Self { meta: ResourceMeta::from(manifest), identity: manifest.identity(), news }
    }
}

// === impl Telling ===

impl Telling {
    /// The status.
    pub fn status(mut self, now: OffsetDateTime) -> ManifestWorkStatus {
        let mut room = BytesLeft::default();
        let entries = std::mem::take(&mut self.entries);
        let identities: Vec<Identity> = entries.iter().map(|entry| entry.identity.clone()).collect();
        let before = std::mem::take(&mut self.before);
        let index = Index::new(&before.resource_status.manifests);
        let mut manifests: Vec<ManifestCondition> =
            entries.into_iter().map(|entry| self.manifest(&index, entry, now)).collect();
        for manifest in &mut manifests {
            room.fit(manifest, now);
        }
        let mut conditions = before.conditions;
        let mut applied = all_applied(&manifests, self.generation).filter(|_| !self.is_complete);
        if let (Some(applied), Some(stays)) = (&mut applied, &self.stays) {
            applied.message = format!("{}; {stays}", applied.message);
        }
        for one in applied.into_iter().chain(aggregate(&manifests, self.generation)) {
            condition::set(&mut conditions, one, now);
        }
        prune(&mut conditions, self.generation);
        if self.is_of_set && !has_progressing_rule(&self.configs, &identities) {
            if self.needs_rules {
                take_default_progressing(&mut conditions);
            } else {
                set_default_progressing(&mut conditions, self.generation, now);
            }
        }
        let mut status = ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() };
        status.resource_status.manifests = manifests;
        status
    }

    fn manifest(&self, index: &Index<'_>, entry: Entry, now: OffsetDateTime) -> ManifestCondition {
        let known = index.find(&entry.meta);
        let Some(news) = entry.news else {
            let known = known.cloned().unwrap_or_default();
            return ManifestCondition { resource_meta: entry.meta, ..known };
        };
        let mut manifest = self.applied(known.cloned(), entry.meta, &news, now);
        condition::set(&mut manifest.conditions, available(&news.availability), now);
        // A missing object has no values, and its earlier ones stay, as in upstream.
        if let Some(said) = news.said {
            delivery::work::feedback(&mut manifest, said.feedback, now);
            for one in said.conditions {
                condition::set(&mut manifest.conditions, one, now);
            }
            prune(&mut manifest.conditions, self.generation);
        } else {
            prune_others(&mut manifest.conditions, options(&entry.identity, &self.configs).condition_rules);
        }
        manifest
    }

    /// A manifest's reported status, with its new outcome.
    fn applied(
        &self,
        known: Option<ManifestCondition>,
        meta: ResourceMeta,
        news: &News,
        now: OffsetDateTime,
    ) -> ManifestCondition {
        if self.is_complete {
            return ManifestCondition { resource_meta: meta, ..known.unwrap_or_default() };
        }
        let mut applied = applied(news.result.as_ref().err().map_or(Ok(()), Err), self.generation);
        if let Some(note) = &news.note {
            applied.message = format!("{}; {note}", applied.message);
        }
        let new = ManifestCondition { resource_meta: meta, conditions: vec![applied], ..Default::default() };
        let known: Vec<ManifestCondition> = known.into_iter().collect();
        merged(&known, vec![new], now).pop().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use delivery::condition::Status;
    use delivery::work::kind;

    use super::*;

    /// The reason of `Progressing` after a work without rules was applied.
    fn progressing(is_of_set: bool, needs_rules: bool, before: ManifestWorkStatus) -> Option<String> {
        let telling = Telling {
            before,
            generation: 1,
            configs: vec![],
            entries: vec![],
            stays: None,
            is_of_set,
            needs_rules,
            is_complete: false,
        };
        let told = telling.status(OffsetDateTime::UNIX_EPOCH);
        condition::find(&told.conditions, kind::PROGRESSING).map(|one| one.reason.clone())
    }

    fn told(reason: &str) -> ManifestWorkStatus {
        let one = Condition::new(kind::PROGRESSING, Status::False, reason, "").at(1);
        ManifestWorkStatus { conditions: vec![one], ..ManifestWorkStatus::default() }
    }

    #[test]
    fn of_a_missing_object_only_conditions_of_its_rules_stay() {
        let meta = ResourceMeta { resource: "configmaps".into(), name: "a".into(), ..ResourceMeta::default() };
        let identity = Identity { resource: "configmaps".into(), name: "a".into(), ..Identity::default() };
        let known = |kind: &str| Condition::new(kind, Status::True, "ConditionRuleEvaluated", "").at(1);
        let conditions = vec![known("Kept"), known("Gone"), known(kind::COMPLETE)];
        let mut before = ManifestWorkStatus { conditions: conditions.clone(), ..ManifestWorkStatus::default() };
        before.resource_status.manifests =
            vec![ManifestCondition { resource_meta: meta.clone(), conditions, ..Default::default() }];
        let config = serde_json::json!({"resourceIdentifier": {"resource": "configmaps", "name": "a"},
            "conditionRules": [{"condition": "Kept", "type": "CEL", "celExpressions": ["true"]}]});
        let news = News { result: Ok(()), availability: Availability::NotFound, said: None, note: None };
        let telling = Telling {
            before,
            generation: 2,
            configs: vec![serde_json::from_value(config).unwrap()],
            entries: vec![Entry { meta, identity, news: Some(news) }],
            stays: None,
            is_of_set: false,
            needs_rules: false,
            is_complete: false,
        };
        let told = telling.status(OffsetDateTime::UNIX_EPOCH);
        for conditions in [&told.conditions, &told.resource_status.manifests[0].conditions] {
            let known: Vec<&str> = conditions.iter().map(|one| one.kind.as_str()).collect();
            assert!(known.contains(&"Kept") && known.contains(&kind::COMPLETE), "{known:?}");
            assert!(!known.contains(&"Gone"), "{known:?}");
        }
    }

    #[test]
    fn where_rollouts_wait_for_a_rule_nothing_is_told_without_one() {
        let nothing = ManifestWorkStatus::default;
        assert_eq!(progressing(true, false, nothing()).as_deref(), Some("Applying"));
        assert_eq!(progressing(true, true, nothing()), None);
        assert_eq!(progressing(true, true, told("Completed")), None, "what was told before the flag was set");
        assert_eq!(progressing(true, true, told("Theirs")).as_deref(), Some("Theirs"));
        assert_eq!(progressing(false, true, told("Completed")).as_deref(), Some("Completed"), "a user's own work");
    }
}
