//! Numbers and times as text.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::html::Html;

/// A number, as in `1,234,567`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A rate, with two decimals below 1 and one below 100.
pub fn rate(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        ..1.0 => format!("{per_second:.2}"),
        ..100.0 => format!("{per_second:.1}"),
        _ => format!("{per_second:.0}"),
    }
}

/// A duration. `–` if there is none.
pub fn millis(millis: Option<f64>) -> String {
    match millis {
        None => "–".to_owned(),
        Some(millis @ ..10.0) => format!("{millis:.1} ms"),
        Some(millis @ ..10_000.0) => format!("{millis:.0} ms"),
        Some(millis) => format!("{:.1} s", millis / 1000.0),
    }
}

pub fn took(span: Duration) -> String {
    millis(Some(span.as_secs_f64() * 1000.0))
}

/// A moment, in UTC. The page's script may show it in the reader's own time.
pub fn moment(html: &mut Html, millis: i64) {
    let time = OffsetDateTime::from_unix_timestamp(millis / 1000).unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let whole = time.format(&Rfc3339).unwrap_or_default();
    let clock = format!("{} {:02}:{:02}:{:02}", time.date(), time.hour(), time.minute(), time.second());
    html.raw("<time datetime=\"").text(&whole).raw("\">").text(&clock).raw(" UTC</time>");
}

/// Adds words with commands between backticks.
pub fn prose(html: &mut Html, words: &str) {
    for (place, piece) in words.split('`').enumerate() {
        if place % 2 == 0 {
            html.text(piece);
        } else {
            html.raw("<code>").text(piece).raw("</code>");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.254, 9.96, 99.94, 1234.5].map(rate), ["0", "0.25", "10.0", "99.9", "1234"]);
        let spans = [None, Some(1.26), Some(12.6), Some(12_600.0)].map(millis);
        assert_eq!(spans, ["–", "1.3 ms", "13 ms", "12.6 s"]);
    }

    #[test]
    fn a_moment_is_told_in_utc() {
        let mut html = Html::default();
        moment(&mut html, 1_795_492_044_123);
        assert_eq!(html.as_str(), "<time datetime=\"2026-11-24T03:47:24Z\">2026-11-24 03:47:24 UTC</time>");
    }

    #[test]
    fn commands_are_set_apart() {
        let mut html = Html::default();
        prose(&mut html, "see `a <b>` and `c");
        assert_eq!(html.as_str(), "see <code>a &lt;b&gt;</code> and <code>c</code>");
    }
}
