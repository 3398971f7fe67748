//! Numbers as people read them.

use crate::figure::Bound;
use crate::statistics::Summary;

/// A number with `digits` after the point and thousands apart: `12,345.6`.
pub fn number(value: f64, digits: usize) -> String {
    let text = format!("{:.digits$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::new();
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let zero = text.chars().all(|c| matches!(c, '0' | '.'));
    let sign = if value < 0.0 && !zero { "−" } else { "" };
    format!("{sign}{grouped}{rest}")
}

/// The median, with the lowest and the highest if there were several rounds: `1.5 (1.4–1.7)`.
pub fn spread(summary: &Summary, digits: usize) -> String {
    let median = number(summary.median, digits);
    if summary.rounds < 2 {
        return median;
    }
    format!("{median} ({}–{})", number(summary.lowest, digits), number(summary.highest, digits))
}

/// `≤ 0.25`
pub fn bound(bound: Bound) -> String {
    // Bounds are written by hand, and some of them as fractions: 1/12.
    let limit = |value: f64| {
        let digits = if value.abs() >= 10.0 || value.fract() == 0.0 { 0 } else { 3 };
        let text = number(value, digits);
        if text.contains('.') { text.trim_end_matches('0').to_owned() } else { text }
    };
    match bound {
        Bound::AtMost(value) => format!("≤ {}", limit(value)),
        Bound::AtLeast(value) => format!("≥ {}", limit(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart_and_digits_are_as_asked() {
        assert_eq!(number(1_234_567.891, 1), "1,234,567.9");
        assert_eq!(number(999.5, 0), "1,000");
        assert_eq!(number(-12.34, 1), "−12.3");
        assert_eq!(number(-0.01, 1), "0.0");
    }

    #[test]
    fn a_single_round_has_no_spread() {
        let summary = |rounds| Summary { median: 1.5, lowest: 1.4, highest: 1700.0, rounds };
        assert_eq!(spread(&summary(5), 1), "1.5 (1.4–1,700.0)");
        assert_eq!(spread(&summary(1), 1), "1.5");
    }

    #[test]
    fn bounds_are_short() {
        assert_eq!(bound(Bound::AtMost(1.0 / 12.0)), "≤ 0.083");
        assert_eq!(bound(Bound::AtMost(0.85)), "≤ 0.85");
        assert_eq!(bound(Bound::AtLeast(6.0)), "≥ 6");
        assert_eq!(bound(Bound::AtMost(150.0)), "≤ 150");
    }
}
