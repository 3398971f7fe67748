//! The clauses of an Accept header (RFC 9110 §12.5.1).
//!
//! Lenient where the intent is clear: skips unknown parameters, and reads a malformed quality as 1,
//! like goautoneg. Drops a clause without a slash.

use std::cmp::Reverse;

use http::header::ACCEPT;
use http::{HeaderMap, HeaderValue};

/// Most clauses read per request. Real clients send at most a handful. The rest is ignored.
const MAX_CLAUSES: usize = 32;

/// One `type/subtype;parameters`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Clause<'a> {
    main: &'a str,
    sub: &'a str,
    /// The parameters `g`, `v` and `as`: the kind to convert the document to.
    pub(super) target: (Option<&'a str>, Option<&'a str>, Option<&'a str>),
    /// In thousandths.
    quality: u16,
}

/// All clauses with a quality above 0, in their order.
pub(super) fn all(headers: &HeaderMap) -> impl Iterator<Item = Clause<'_>> {
    of_lines(headers.get_all(ACCEPT))
}

/// All clauses of some lines with a quality above 0, in their order.
pub(super) fn of_lines<'a>(lines: impl IntoIterator<Item = &'a HeaderValue>) -> impl Iterator<Item = Clause<'a>> {
    let lines = lines.into_iter().filter_map(|line| line.to_str().ok());
    let clauses = lines.flat_map(|line| split(line, ',')).filter_map(Clause::parse).take(MAX_CLAUSES);
    clauses.filter(|clause| clause.quality > 0)
}

/// All clauses with a quality above 0, best first.
pub(super) fn sorted(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let mut clauses: Vec<_> = all(headers).collect();
    clauses.sort_by_key(|clause| Reverse((clause.quality, clause.main != "*", clause.sub != "*")));
    clauses
}

// === impl Clause ===

impl<'a> Clause<'a> {
    /// Whether the range covers the media type `media` (`type/subtype`, lower-case).
    pub(super) fn matches(&self, media: &str) -> bool {
        let (main, sub) = media.split_once('/').unwrap_or((media, ""));
        let main_matches = self.main == "*" || self.main.eq_ignore_ascii_case(main);
        main_matches && (self.sub == "*" || self.sub.eq_ignore_ascii_case(sub))
    }

    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = split(text, ';');
        let (main, sub) = parts.next()?.trim().split_once('/')?;
        let mut clause = Self { main: main.trim(), sub: sub.trim(), target: (None, None, None), quality: 1000 };
        if clause.main.is_empty() || clause.sub.is_empty() {
            return None;
        }
        for (key, value) in parts.filter_map(|part| part.split_once('=')) {
            let (key, value) = (key.trim(), unquoted(value.trim()));
            match key {
                "g" | "G" => clause.target.0 = Some(value),
                "v" | "V" => clause.target.1 = Some(value),
                "q" | "Q" => clause.quality = quality(value).unwrap_or(1000),
                key if key.eq_ignore_ascii_case("as") => clause.target.2 = Some(value),
                _ => {}
            }
        }
        Some(clause)
    }
}

/// Splits at `separator` outside quoted strings.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |character: char| {
        match character {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            other => return !quoted && other == separator,
        }
        false
    })
}

/// Keeps escapes inside the quotes: no value that we compare with has any.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Parses `0`, `1` or a decimal fraction in between. Returns thousandths.
fn quality(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = fraction.bytes().chain(std::iter::repeat(b'0')).take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match whole {
        "0" | "" => Some(thousandths),
        "1" => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn qualities() {
        for (text, expected) in [
            ("0", Some(0)),
            ("0.", Some(0)),
            ("0.000", Some(0)),
            ("0.5", Some(500)),
            (".25", Some(250)),
            ("0.12345", Some(123)),
            ("1", Some(1000)),
            ("1.000", Some(1000)),
            ("2", None),
            ("-1", None),
            ("0.x", None),
            ("nan", None),
        ] {
            assert_eq!(quality(text), expected, "{text}");
        }
    }

    #[test]
    fn separators_inside_quotes_do_not_split() {
        let clause = Clause::parse(r#"Application/JSON ; x="a;b\";c" ; v="v2""#).expect("a clause");
        assert!(clause.matches("application/json"));
        assert_eq!(clause.target, (None, Some("v2"), None));
        assert_eq!(split(r#"a/b;x=",",c/d"#, ',').collect::<Vec<_>>(), [r#"a/b;x=",""#, "c/d"]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_within_bounds(text in "[ -~]*") {
            let mut headers = HeaderMap::new();
            headers.append(ACCEPT, text.parse().expect("visible ASCII"));
            prop_assert!(sorted(&headers).len() <= MAX_CLAUSES);
        }
    }
}
