//! Durations as Kubernetes flags write them: `10s`, `1m30s`, `500ms`, `0`.

use std::time::Duration;

/// Longest duration a flag may have.
const LONGEST: Duration = Duration::from_hours(24);

/// Parses one or more number-and-unit pairs (`h`, `m`, `s`, `ms`), the whole-number part of Go's
/// `time.ParseDuration`.
pub fn parse(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration: write for example 10s, 1m30s or 500ms");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
        let number: u32 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let unit = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let one = match &rest[..unit] {
            "h" => Duration::from_hours(1),
            "m" => Duration::from_mins(1),
            "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            _ => return Err(invalid()),
        };
        total = one.checked_mul(number).and_then(|part| total.checked_add(part)).ok_or_else(invalid)?;
        rest = &rest[unit..];
    }
    if text.is_empty() || total > LONGEST { Err(invalid()) } else { Ok(total) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_kubernetes_flags_write() {
        for (text, milliseconds) in
            [("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("0", 0), ("0s", 0), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text).unwrap(), Duration::from_millis(milliseconds), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1.5s", "10 s", "1d", "99999999999s", "48h", "ms5"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
