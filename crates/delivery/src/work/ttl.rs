//! When a work that is complete is deleted.

use time::{Duration, OffsetDateTime};

use super::kind;
use super::replica_set::SET_LABEL;
use super::spec::DeleteOption;
use crate::condition::{Condition, Status, find};

/// When the work is deleted; none: not at all, as where nobody can read since when it is complete.
/// Works of a `ReplicaSet` are its own to delete.
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
