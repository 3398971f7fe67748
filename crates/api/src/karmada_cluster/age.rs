//! Ages as Kubernetes prints them (`k8s.io/apimachinery/pkg/util/duration.HumanDuration`).

use std::time::SystemTime;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The time since `created`, RFC 3339.
pub(super) fn since(created: Option<&str>, now: SystemTime) -> String {
    let created = created.and_then(|text| OffsetDateTime::parse(text, &Rfc3339).ok());
    created.map_or_else(|| "<unknown>".to_owned(), |then| words((OffsetDateTime::from(now) - then).whole_seconds()))
}

/// `seconds` in words. Clocks differ: two seconds in the future are now.
fn words(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two((minutes, "m"), (seconds % 60, "s")),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two((hours, "h"), (minutes % 60, "m")),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => two((days, "d"), (hours % 24, "h")),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => two((days / 365, "y"), (days % 365, "d")),
        () => format!("{}y", days / 365),
    }
}

fn two((many, unit): (i64, &str), (rest, smaller): (i64, &str)) -> String {
    if rest == 0 { format!("{many}{unit}") } else { format!("{many}{unit}{rest}{smaller}") }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn ages_are_worded_as_kubectl_words_them() {
        const DAY: i64 = 86_400;
        for (seconds, expected) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (179 * 60 + 59, "179m"),
            (180 * 60, "3h"),
            (7 * 3600 + 60, "7h1m"),
            (8 * 3600, "8h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3600, "2d1h"),
            (8 * DAY + 3600, "8d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (2921 * DAY, "8y"),
        ] {
            assert_eq!(words(seconds), expected, "{seconds}");
        }
    }

    #[test]
    fn an_age_is_the_time_since_the_beginning() {
        let now = UNIX_EPOCH + Duration::from_secs(90);
        assert_eq!(since(Some("1970-01-01T00:00:00Z"), now), "90s");
        assert_eq!((since(None, now), since(Some("soon"), now)), ("<unknown>".to_owned(), "<unknown>".to_owned()));
    }
}
