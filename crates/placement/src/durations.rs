//! Durations as Go and CEL write them.

use time::Duration as Span;

/// Units of durations, longer names first where one begins with another.
const UNITS: [(&str, i128); 8] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ns", 1),
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
];

/// Parses a duration as Go writes it: `1h30m`, `-1.5s`, `0`.
pub fn read(text: &str) -> Option<Span> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut rest = unsigned;
    let mut total: i128 = 0;
    while !rest.is_empty() && unsigned != "0" {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, nanos) = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit))?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if number.len() > 20 || (whole.is_empty() && fraction.is_empty()) {
            return None;
        }
        let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
        let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
        let one = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        total = total.checked_add(whole.checked_mul(nanos)?)?.checked_add(part.checked_mul(nanos)? / one)?;
        rest = &after[unit.len()..];
    }
    let total = i64::try_from(if text.starts_with('-') { -total } else { total }).ok()?;
    (!unsigned.is_empty()).then_some(Span::nanoseconds(total))
}

/// In seconds, as CEL writes durations: `90s`, `1.5s`.
pub fn written(span: Span) -> String {
    let nanos = span.whole_nanoseconds();
    let sign = if nanos < 0 { "-" } else { "" };
    let (seconds, rest) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_does() {
        for (text, milliseconds) in [
            ("1h30m", 5_400_000),
            ("-1.5s", -1_500),
            ("+2ms", 2),
            ("0", 0),
            (".5s", 500),
            ("5.s", 5_000),
            ("1m1ms", 60_001),
        ] {
            assert_eq!(read(text), Some(Span::milliseconds(milliseconds)), "{text}");
        }
        for text in ["", "-", "1", "1d", "s", ".s", "1s2", "9999999999h", "١s"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn durations_are_written_in_seconds() {
        let texts = [5_400_000, 1_500, -7_200_000, 0].map(|span| written(Span::milliseconds(span)));
        assert_eq!(texts, ["5400s", "1.5s", "-7200s", "0s"]);
    }
}
