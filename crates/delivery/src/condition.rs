//! `metav1.Condition`, and how a list of them changes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// A condition. Times have whole seconds, because more is not written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Condition {
    #[serde(rename = "type")]
    pub kind: String,
    pub status: Status,
    #[serde(skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    #[serde(serialize_with = "written", deserialize_with = "read")]
    pub last_transition_time: Option<OffsetDateTime>,
    pub reason: String,
    pub message: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    True,
    False,
    #[default]
    #[serde(other)]
    Unknown,
}

/// Longest message that the API allows, in bytes.
pub const MESSAGE: usize = 32 * 1024;

// === impl Status ===

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

// === impl Condition ===

impl Condition {
    pub fn new(kind: &str, status: Status, reason: &str, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE {
            message.truncate(message.floor_char_boundary(MESSAGE));
        }
        Self { kind: kind.to_owned(), status, reason: reason.to_owned(), message, ..Self::default() }
    }

    #[must_use]
    pub fn at(self, generation: i64) -> Self {
        Self { observed_generation: generation, ..self }
    }
}

/// The condition of that type.
pub fn find<'c>(conditions: &'c [Condition], kind: &str) -> Option<&'c Condition> {
    conditions.iter().find(|condition| condition.kind == kind)
}

/// Whether the condition of that type is True.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == Status::True)
}

/// Replaces the condition of `new`'s type, or appends `new`. If the status changes, or there was no
/// condition, the time of transition is that of `new`, or else `now`; otherwise it stays. Like
/// Kubernetes' `meta.SetStatusCondition`.
pub fn set(conditions: &mut Vec<Condition>, new: Condition, now: OffsetDateTime) {
    let moved = Some(whole(new.last_transition_time.unwrap_or(now)));
    match conditions.iter_mut().find(|known| known.kind == new.kind) {
        None => conditions.push(Condition { last_transition_time: moved, ..new }),
        Some(known) => {
            let stays = known.status == new.status;
            let last_transition_time = if stays { known.last_transition_time } else { moved };
            *known = Condition { last_transition_time, ..new };
        }
    }
}

/// Removes the condition of that type.
pub fn remove(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|condition| condition.kind != kind);
}

fn whole(time: OffsetDateTime) -> OffsetDateTime {
    time.replace_nanosecond(0).unwrap_or(time)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands references")]
fn is_zero(generation: &i64) -> bool {
    *generation == 0
}

/// Writes RFC 3339 in UTC, with whole seconds.
#[expect(clippy::ref_option, reason = "serde hands references")]
fn written<S: Serializer>(time: &Option<OffsetDateTime>, out: S) -> Result<S::Ok, S::Error> {
    let utc = time.and_then(|time| time.checked_to_offset(UtcOffset::UTC)).map(whole);
    utc.and_then(|time| time.format(&Rfc3339).ok()).serialize(out)
}

/// Reads a text that is not a time as none.
pub(crate) fn read<'de, D: Deserializer<'de>>(input: D) -> Result<Option<OffsetDateTime>, D::Error> {
    let text = Option::<String>::deserialize(input)?;
    Ok(text.and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(seconds: i64) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_772_366_400 + seconds).unwrap()
    }

    #[test]
    fn a_transition_is_a_change_of_status() {
        let mut all = Vec::new();
        set(&mut all, Condition::new("A", Status::True, "One", "x"), at(0));
        set(&mut all, Condition::new("A", Status::True, "Two", "y").at(3), at(5));
        assert_eq!((all[0].last_transition_time, all[0].reason.as_str()), (Some(at(0)), "Two"));
        assert_eq!(all[0].observed_generation, 3);
        set(&mut all, Condition::new("A", Status::False, "Two", "y"), at(9));
        set(&mut all, Condition::new("B", Status::False, "Two", "y"), at(9));
        assert_eq!((all[0].last_transition_time, all.len()), (Some(at(9)), 2));
        remove(&mut all, "A");
        assert!(find(&all, "A").is_none() && !is_true(&all, "B"));
    }

    #[test]
    fn it_is_written_as_the_api_does() {
        let one = Condition::new("A", Status::True, "R", "").at(2);
        let mut all = Vec::new();
        set(&mut all, one, at(0) + time::Duration::milliseconds(300));
        let written = serde_json::to_value(&all).unwrap();
        let wanted = json!([{"type": "A", "status": "True", "observedGeneration": 2, "reason": "R", "message": "",
            "lastTransitionTime": "2026-03-01T12:00:00Z"}]);
        assert_eq!(written, wanted);
        assert_eq!(serde_json::from_value::<Vec<Condition>>(written).unwrap(), all);
        let odd: Condition = serde_json::from_value(json!({"status": "Maybe", "lastTransitionTime": "soon"})).unwrap();
        assert_eq!((odd.status, odd.last_transition_time), (Status::Unknown, None));
    }

    #[test]
    fn a_message_is_cut_where_the_api_ends() {
        let long = Condition::new("A", Status::True, "R", format!("a{}", "é".repeat(MESSAGE)));
        // Only half of the last character would fit.
        assert!(long.message.len() == MESSAGE - 1 && long.message.ends_with('é'));
    }
}
