//! The progress of a work with its template.

use time::OffsetDateTime;

use crate::condition::{Condition, Status, find};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutStatus {
    /// The member's objects are not yet those of the template.
    ToApply,
    Progressing,
    Succeeded,
    Failed,
    /// It was progressing or failed for longer than the deadline.
    TimeOut,
    Skip,
}

/// A work that has the new template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Existing<'a> {
    pub cluster: &'a str,
    pub state: RolloutStatus,
    /// Since when it is in this state; `None` for now.
    pub since: Option<OffsetDateTime>,
}

/// The state of a work at `generation`, and since when, from its conditions `Applied`,
/// `Progressing` and, if there is one, `Degraded`. Each must have observed that generation.
pub fn state(generation: i64, conditions: &[Condition]) -> (RolloutStatus, Option<OffsetDateTime>) {
    let of = |kind: &str| find(conditions, kind);
    let is_current = |condition: &&Condition| condition.observed_generation == generation;
    let to_apply = (RolloutStatus::ToApply, None);
    let applied = of("Applied").filter(is_current).filter(|condition| condition.status == Status::True);
    let (Some(_), Some(progressing)) = (applied, of("Progressing").filter(is_current)) else { return to_apply };
    let degraded = of("Degraded");
    if degraded.is_some_and(|condition| !is_current(&condition)) {
        return to_apply;
    }
    let failed = degraded.filter(|condition| condition.status == Status::True && progressing.status == Status::True);
    let (state, since) = match (failed, progressing.status) {
        (Some(degraded), _) => (RolloutStatus::Failed, degraded),
        (None, Status::False) => (RolloutStatus::Succeeded, progressing),
        (None, _) => (RolloutStatus::Progressing, progressing),
    };
    (state, since.last_transition_time)
}
