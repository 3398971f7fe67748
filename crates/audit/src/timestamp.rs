//! Timestamps of the audit log, in UTC.

use std::fmt;
use std::time::SystemTime;

use time::OffsetDateTime;

/// `metav1.MicroTime`: `2006-01-02T15:04:05.000000Z`.
pub struct Micro(pub SystemTime);

/// The timestamp in a rotated file's name (lumberjack's `backupTimeFormat`):
/// `2006-01-02T15-04-05.000`.
pub struct FileStamp(pub SystemTime);

// === impl Micro ===

impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from(self.0);
        let (hour, minute, second, micro) = at.time().as_hms_micro();
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
    }
}

impl serde::Serialize for Micro {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

// === impl FileStamp ===

impl FileStamp {
    /// Whether `text` is such a timestamp. As text they sort by time.
    pub fn is_one(text: &str) -> bool {
        const SHAPE: &[u8] = b"0000-00-00T00-00-00.000";
        let fits = |(byte, shape): (u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape };
        text.len() == SHAPE.len() && text.bytes().zip(SHAPE).all(fits)
    }
}

impl fmt::Display for FileStamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = OffsetDateTime::from(self.0);
        let (hour, minute, second, milli) = at.time().as_hms_milli();
        let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}.{milli:03}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_are_written_in_full() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_micros(1_782_907_445_000_042);
        assert_eq!(Micro(at).to_string(), "2026-07-01T12:04:05.000042Z");
        assert_eq!(FileStamp(at).to_string(), "2026-07-01T12-04-05.000");
    }

    #[test]
    fn stamps_are_told_from_other_names() {
        assert!(FileStamp::is_one(&FileStamp(SystemTime::now()).to_string()));
        for other in ["", "2026-07-01T12-04-05", "2026-07-01T12:04:05.000", "2026-07-01T12-04-05.00x", "copy"] {
            assert!(!FileStamp::is_one(other), "{other}");
        }
    }
}
