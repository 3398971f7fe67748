//! Times in the format of the API (`metav1.Time`).

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// RFC 3339 in UTC, in whole seconds. Empty for a year that the format cannot write.
pub fn text(at: SystemTime) -> String {
    let at = OffsetDateTime::from(at);
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

/// The current time.
pub fn now() -> String {
    text(SystemTime::now())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_time_is_of_whole_seconds() {
        assert_eq!(text(UNIX_EPOCH + Duration::from_millis(1_772_366_400_999)), "2026-03-01T12:00:00Z");
    }
}
