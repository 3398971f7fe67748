//! When a work that is complete is deleted.

use time::{Duration, OffsetDateTime};

use super::kind;
use super::replica_set::SET_LABEL;
use super::spec::DeleteOption;
use crate::condition::{Condition, Status, find};

/// When the work is deleted; none: not at all. Works of a `ReplicaSet` are its own to delete.
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
    let since = complete.last_transition_time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    Some(since.saturating_add(Duration::seconds(seconds.max(0))))
}
