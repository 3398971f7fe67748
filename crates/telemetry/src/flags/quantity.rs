//! Quantities in the form of Kubernetes flags: durations and amounts of memory.

use std::time::Duration;

/// Longest duration of a flag.
const LONGEST: Duration = Duration::from_hours(24);

/// Parses a duration (`10s`, `1m30s`, `500ms`, `0`): one or more pairs of number and unit (`h`,
/// `m`, `s`, `ms`). This is the whole-number part of Go's `time.ParseDuration`.
pub fn duration(text: &str) -> Result<Duration, String> {
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

/// Parses an amount of memory (`512Mi`, `1Gi`): a whole number, optionally with `Ki`, `Mi` or `Gi`.
/// Refuses zero.
pub fn bytes(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not an amount of memory: write for example 512Mi or 1Gi");
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        _ => return Err(invalid()),
    };
    let number: u64 = number.parse().map_err(|_| invalid())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_kubernetes_flags_write_them() {
        for (text, milliseconds) in
            [("10s", 10_000), ("1m30s", 90_000), ("500ms", 500), ("0", 0), ("0s", 0), ("1h", 3_600_000)]
        {
            assert_eq!(duration(text).unwrap(), Duration::from_millis(milliseconds), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1.5s", "10 s", "1d", "99999999999s", "48h", "ms5"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_of_memory_are_read_as_kubernetes_writes_them() {
        for (text, amount) in [("1", 1), ("64Ki", 65_536), ("512Mi", 536_870_912), ("2Gi", 2_147_483_648)] {
            assert_eq!(bytes(text), Ok(amount), "{text}");
        }
        for text in ["", "0", "Mi", "-1", "1M", "1.5Gi", "99999999999999999999", "17179869184Gi"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
