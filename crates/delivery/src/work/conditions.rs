//! Conditions of a manifest and of its work, with upstream's reasons and messages.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use super::kind;
use super::status::{FeedbackValue, ManifestCondition};
use crate::condition::{self, Condition, Status};
use crate::feedback::Feedback;
use crate::strategy::Refusal;

/// Why an object was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failed {
    /// `ignoreFields` could not be evaluated.
    IgnoreFields(String),
    Other(String),
}

/// What is known of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    Available,
    NotFound,
    /// It could not be read, and why.
    Unknown(String),
    /// Its kind, version or name is not known.
    Incomplete,
}

// === impl Failed ===

impl From<&Refusal> for Failed {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::Ignore(error) => Self::IgnoreFields(error.to_string()),
            other @ Refusal::FieldManager(_) => Self::Other(other.to_string()),
        }
    }
}

/// `Applied` of a manifest.
pub fn applied(result: Result<(), &Failed>, generation: i64) -> Condition {
    let failed = |reason: &str, message: String| Condition::new(kind::APPLIED, Status::False, reason, message);
    let made = match result {
        Ok(()) => Condition::new(kind::APPLIED, Status::True, "AppliedManifestComplete", "Apply manifest complete"),
        Err(Failed::IgnoreFields(why)) => {
            failed("AppliedManifestSSAIgnoreFieldError", format!("Failed to process ignoreFields: {why}"))
        }
        Err(Failed::Other(why)) => failed("AppliedManifestFailed", format!("Failed to apply manifest: {why}")),
    };
    made.at(generation)
}

/// Whether the manifest was applied as it is at `generation`, which then means
/// [`crate::strategy::Known::Applied`].
pub fn was_applied(manifest: &ManifestCondition, generation: i64) -> bool {
    let applied = condition::find(&manifest.conditions, kind::APPLIED);
    applied.is_some_and(|one| one.status == Status::True && one.observed_generation == generation)
}

/// Whether the manifest, or the work, with these conditions is complete: nothing more is applied of
/// it. As upstream, this counts for any writer and any generation.
pub fn is_complete(conditions: &[Condition]) -> bool {
    condition::is_true(conditions, kind::COMPLETE)
}

/// `Applied` of the work: False if it is False for one manifest, otherwise True. `None` if no
/// manifest has it.
pub fn all_applied(manifests: &[ManifestCondition], generation: i64) -> Option<Condition> {
    let mut known = manifests.iter().filter_map(|one| condition::find(&one.conditions, kind::APPLIED)).peekable();
    known.peek()?;
    let made = if known.any(|one| one.status == Status::False) {
        let message = "Failed to apply manifest work";
        Condition::new(kind::APPLIED, Status::False, "AppliedManifestWorkFailed", message)
    } else {
        let message = "Apply manifest work complete";
        Condition::new(kind::APPLIED, Status::True, "AppliedManifestWorkComplete", message)
    };
    Some(made.at(generation))
}

/// `Available` of a manifest. Upstream gives it no generation.
pub fn available(state: &Availability) -> Condition {
    let made = |status, reason: &str, message: String| Condition::new(kind::AVAILABLE, status, reason, message);
    match state {
        Availability::Available => made(Status::True, "ResourceAvailable", "Resource is available".to_owned()),
        Availability::NotFound => made(Status::False, "ResourceNotAvailable", "Resource is not available".to_owned()),
        Availability::Unknown(why) => {
            made(Status::Unknown, "FetchingResourceFailed", format!("Failed to fetch resource: {why}"))
        }
        Availability::Incomplete => {
            made(Status::Unknown, "IncompleteResourceMeta", "Resource meta is incomplete".to_owned())
        }
    }
}

/// Sets the values of a manifest, and `StatusFeedbackSynced`, whose time moves when they change.
/// `found` is none if no rule asks for values.
pub fn feedback(manifest: &mut ManifestCondition, found: Option<Feedback>, now: OffsetDateTime) {
    let condition = synced(found.as_ref());
    let values = found.unwrap_or_default().values.into_iter();
    let values: Vec<_> = values.map(|(name, value)| FeedbackValue { name, field_value: value.into() }).collect();
    if manifest.status_feedback.values != values {
        condition::remove(&mut manifest.conditions, kind::FEEDBACK);
    }
    condition::set(&mut manifest.conditions, condition, now);
    manifest.status_feedback.values = values;
}

/// `StatusFeedbackSynced` of a manifest.
pub fn synced(found: Option<&Feedback>) -> Condition {
    let Some(found) = found else { return Condition::new(kind::FEEDBACK, Status::True, "NoStatusFeedbackSynced", "") };
    if found.errors.is_empty() {
        return Condition::new(kind::FEEDBACK, Status::True, "StatusFeedbackSynced", "");
    }
    let message = format!("Sync status feedback failed with error {}", together(&found.errors));
    Condition::new(kind::FEEDBACK, Status::False, "StatusFeedbackSyncFailed", message)
}

/// `Deleting` of a work.
pub fn deleting(generation: i64) -> Condition {
    Condition::new(kind::DELETING, Status::True, "WorkDeleting", "ManifestWork is being deleted").at(generation)
}

/// Joins errors as Go prints an aggregate: each once.
fn together(errors: &[String]) -> String {
    let mut known = BTreeSet::new();
    let once: Vec<&str> = errors.iter().map(String::as_str).filter(|error| known.insert(*error)).collect();
    match once.as_slice() {
        [one] => (*one).to_owned(),
        all => format!("[{}]", all.join(", ")),
    }
}
