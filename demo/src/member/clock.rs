//! The member's time: a wall-clock origin plus a count of one-second beats.
//!
//! Everything that moves (ages, logs, the pods' life) is a function of the beat, so tests advance time by
//! calling [`Clock::beat`] and never sleep. Timestamps have whole seconds, as `metav1.Time` has.

use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};
use tokio::sync::watch;

/// A clock that stands still between beats. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    now: watch::Sender<OffsetDateTime>,
}

// === impl Clock ===

impl Clock {
    /// A clock that starts at `origin`, cut to whole seconds.
    pub(crate) fn starting_at(origin: OffsetDateTime) -> Self {
        let whole = origin.replace_nanosecond(0).unwrap_or(origin);
        Self { now: watch::Sender::new(whole) }
    }

    /// The current second.
    pub(crate) fn now(&self) -> OffsetDateTime {
        *self.now.borrow()
    }

    /// Moves the clock by one second and wakes everybody who waits for it.
    pub(crate) fn beat(&self) {
        self.now.send_modify(|now| *now += Duration::SECOND);
    }

    /// Sees every later beat; several beats may be seen as one.
    pub(crate) fn subscribe(&self) -> watch::Receiver<OffsetDateTime> {
        self.now.subscribe()
    }
}

/// A `metav1.Time`: RFC 3339, UTC.
pub(crate) fn timestamp(moment: OffsetDateTime) -> String {
    moment.format(&Rfc3339).unwrap_or_default()
}

/// Reads a `metav1.Time`; `None` when it is absent or malformed.
pub(crate) fn parse_timestamp(text: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(text, &Rfc3339).ok()
}

/// An age as kubectl's tables show it (`k8s.io/apimachinery/pkg/util/duration`, `HumanDuration`).
pub(crate) fn age(duration: Duration) -> String {
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{big_unit}") } else { format!("{big}{big_unit}{small}{small_unit}") }
    };
    let seconds = duration.whole_seconds().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match hours {
        _ if seconds < 120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        0..3 => format!("{minutes}m"),
        3..8 => two(hours, "h", minutes % 60, "m"),
        8..48 => format!("{hours}h"),
        48..192 => two(days, "d", hours % 24, "h"),
        192..17_520 => format!("{days}d"),
        17_520..70_080 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_like_kubectl() {
        let cases = [
            (-5, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (12_600, "3h30m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, shown) in cases {
            assert_eq!(age(Duration::seconds(seconds)), shown, "{seconds}");
        }
    }

    #[test]
    fn a_beat_is_a_second_and_wakes_subscribers() {
        let clock = Clock::starting_at(OffsetDateTime::UNIX_EPOCH + Duration::milliseconds(1_700));
        let mut seen = clock.subscribe();
        assert_eq!(timestamp(clock.now()), "1970-01-01T00:00:01Z");
        clock.beat();
        assert!(seen.has_changed().unwrap());
        assert_eq!(timestamp(*seen.borrow_and_update()), "1970-01-01T00:00:02Z");
        assert_eq!(parse_timestamp(&timestamp(clock.now())), Some(clock.now()));
    }
}
