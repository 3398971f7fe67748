//! Durations in the format of Go's `time.ParseDuration`, which `metav1.Duration` uses.

/// The default of upstream's definition (`8640h0m0s`).
const DEFAULT: i64 = 8640 * 3600;
/// Limit of the text, in bytes.
const LONGEST: usize = 64;
/// Significant digits after the point.
const DIGITS: usize = 12;
const SECOND: u128 = 1_000_000_000;

/// Whole seconds. `None` for a text that is no duration, or a negative one.
pub fn seconds(text: &str) -> Option<i64> {
    match text.strip_prefix('+').unwrap_or(text) {
        _ if text.is_empty() => Some(DEFAULT),
        "0" => Some(0),
        text if text.is_empty() || text.len() > LONGEST => None,
        text => i64::try_from(nanoseconds(text)? / SECOND).ok(),
    }
}

fn nanoseconds(mut text: &str) -> Option<u128> {
    let mut total: u128 = 0;
    while !text.is_empty() {
        let is_of_number = |character: char| character.is_ascii_digit() || character == '.';
        let (number, rest) = text.split_at(text.find(|character| !is_of_number(character))?);
        let (unit, rest) = rest.split_at(rest.find(is_of_number).unwrap_or(rest.len()));
        total = total.checked_add(product(number, of_unit(unit)?)?)?;
        text = rest;
    }
    Some(total)
}

fn product(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let fraction = &fraction[..fraction.len().min(DIGITS)];
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    digits(whole)?.checked_mul(unit)?.checked_add(digits(fraction)?.checked_mul(unit)? / scale)
}

/// Nanoseconds.
fn of_unit(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND,
        "m" => 60 * SECOND,
        "h" => 3600 * SECOND,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        for (text, expected) in [
            ("8640h0m0s", 31_104_000),
            ("", 31_104_000),
            ("10m", 600),
            ("+10m", 600),
            ("1h30m", 5400),
            ("1.5h", 5400),
            (".5h", 1800),
            ("1.h", 3600),
            ("1500ms", 1),
            ("999999\u{b5}s", 0),
            ("0", 0),
            ("0s", 0),
            ("0.999999999999999999999s", 0),
        ] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["+", "1", "h", "-1h", "1d", "1 h", "1..5h", ".h", "1h2", "99999999999999999999999h", "1hh"] {
            assert_eq!(seconds(text), None, "{text}");
        }
        assert_eq!(seconds(&"1h".repeat(LONGEST)), None, "too long");
    }
}
