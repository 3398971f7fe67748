//! Durations, as people write and read them.

use std::time::Duration;

/// Parses `500ms`, `10s`, `2m`, `1h`, and a bare number of seconds.
pub fn parse(text: &str) -> Result<Duration, String> {
    let mistake = || format!("{text:?} is not a duration: write 500ms, 10s, 2m or 1h");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u32 = number.parse().map_err(|_| mistake())?;
    let unit = match unit {
        "ms" => Duration::from_millis(1),
        "" | "s" => Duration::from_secs(1),
        "m" => Duration::from_mins(1),
        "h" => Duration::from_hours(1),
        _ => return Err(mistake()),
    };
    match unit * number {
        Duration::ZERO => Err(mistake()),
        span => Ok(span),
    }
}

/// How long something took, to three digits.
pub fn took(span: Duration) -> String {
    let millis = span.as_secs_f64() * 1000.0;
    match millis {
        ..10.0 => format!("{millis:.1}ms"),
        ..10_000.0 => format!("{millis:.0}ms"),
        _ => format!("{:.1}s", span.as_secs_f64()),
    }
}

/// How long something lasts, in its largest unit, as `kubectl get` writes ages.
pub fn rough(seconds: i64) -> String {
    match seconds {
        ..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_go_writes_them() {
        for (text, expected) in [("500ms", 500), ("10s", 10_000), ("7", 7000), ("2m", 120_000), ("1h", 3_600_000)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(expected)), "{text}");
        }
        for text in ["", "s", "0", "0s", "-1s", "1d", "1.5s", "99999999999s"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_written_short() {
        let written = [Duration::from_micros(1234), Duration::from_millis(456), Duration::from_secs(12)].map(took);
        assert_eq!(written, ["1.2ms", "456ms", "12.0s"]);
        assert_eq!([59, 600, 7200, 200_000].map(rough), ["59s", "10m", "2h", "2d"]);
    }
}
