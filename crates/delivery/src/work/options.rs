//! The settings of an object, whether the work owns it, and when the work is deleted by itself.

use time::{Duration, OffsetDateTime};

use super::kind;
use super::replica_set::SET_LABEL;
use super::spec::{ConditionRule, DeleteOption, FeedbackRule, InvalidSpec, ManifestConfig, UpdateStrategy};
use crate::condition::{Condition, Status, find};
use crate::identity::Identity;
use crate::strategy::Strategy;

/// The settings of an object: each kind of setting comes from the first entry that has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options<'a> {
    pub feedback_rules: &'a [FeedbackRule],
    pub update_strategy: Option<&'a UpdateStrategy>,
    pub condition_rules: &'a [ConditionRule],
}

// === impl Options ===

impl Options<'_> {
    /// The strategy for the object; an update, if there is none.
    ///
    /// # Errors
    ///
    /// Fails for an unknown strategy, or an unknown condition of `ignoreFields`.
    pub fn strategy(&self) -> Result<Strategy, InvalidSpec> {
        self.update_strategy.map_or(Ok(Strategy::Update), UpdateStrategy::strategy)
    }
}

/// The settings of `object`.
pub fn options<'a>(object: &Identity, configs: &'a [ManifestConfig]) -> Options<'a> {
    let mut found = Options::default();
    for config in configs.iter().filter(|config| means(&config.resource_identifier, object)) {
        if found.feedback_rules.is_empty() {
            found.feedback_rules = &config.feedback_rules;
        }
        if found.condition_rules.is_empty() {
            found.condition_rules = &config.condition_rules;
        }
        found.update_strategy = found.update_strategy.or(config.update_strategy.as_ref());
    }
    found
}

/// Whether the work owns the object, which is then deleted with it. An object that is only read is
/// not owned.
pub fn is_owned(object: &Identity, option: Option<&DeleteOption>, strategy: &Strategy) -> bool {
    if *strategy == Strategy::ReadOnly {
        return false;
    }
    let Some(option) = option else { return true };
    match option.propagation_policy.as_str() {
        "Foreground" => true,
        "Orphan" => false,
        _ => option.selectively_orphan.as_ref().is_none_or(|orphans| !orphans.orphaning_rules.contains(object)),
    }
}

/// When the work is deleted; none for never, also if the time of its completion is unreadable. Only
/// its `ReplicaSet` deletes a work that belongs to one.
pub fn end<'l>(
    labels: impl IntoIterator<Item = &'l str>,
    option: Option<&DeleteOption>,
    conditions: &[Condition],
) -> Option<OffsetDateTime> {
    let seconds = option?.ttl_seconds_after_finished?;
    let complete = find(conditions, kind::COMPLETE).filter(|one| one.status == Status::True)?;
    if labels.into_iter().any(|label| label == SET_LABEL) {
        return None;
    }
    Some(complete.last_transition_time?.saturating_add(Duration::seconds(seconds.max(0))))
}

fn means(pattern: &Identity, object: &Identity) -> bool {
    pattern.group == object.group
        && pattern.resource == object.resource
        && matches(&pattern.namespace, &object.namespace)
        && matches(&pattern.name, &object.name)
}

/// Whether `pattern`, in which `*` stands for anything, matches all of `text`.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // The first match leaves most to the later parts.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = rest.get(at + part.len()..).unwrap_or_default();
    }
    rest.ends_with(last)
}
