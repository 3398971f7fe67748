//! Query strings of requests that we answer ourselves, parsed as Go's `net/url.ParseQuery` does.
//!
//! The query of a proxied request is forwarded as received. We read it too, to know what the member
//! will do.

use std::borrow::Cow;

/// Most parameters in a query, including empty ones. Go since 1.24 reads *none* of a query with
/// more (`net/url.parseQuery`, `GODEBUG=urlmaxqueryparams`), and earlier versions read all. So we
/// cannot know what a member would do with it.
pub const MOST_PARAMETERS: usize = 10_000;

/// Whether `query` has more than [`MOST_PARAMETERS`]. Counts the separators, like Go.
pub fn has_too_many_parameters(query: &str) -> bool {
    query.len() >= MOST_PARAMETERS && query.bytes().filter(|byte| *byte == b'&').count() >= MOST_PARAMETERS
}

/// The decoded `key=value` pairs in order. Drops the pairs that Go drops (a `;` inside, a bad
/// percent escape), so that a hub in front of us reads the same request.
pub fn pairs(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    raw_pairs(query).filter_map(|(key, value)| Some((unescape(key)?, unescape(value)?)))
}

/// The first value of `key`, like `url.Values.Get`.
pub fn first<'a>(query: Option<&'a str>, key: &str) -> Option<Cow<'a, str>> {
    let [value] = firsts(query, [key]);
    value
}

/// The first values of several keys, in one pass, because this runs for every proxied request. Does
/// not decode the values of other keys.
pub fn firsts<'a, const N: usize>(query: Option<&'a str>, keys: [&str; N]) -> [Option<Cow<'a, str>>; N] {
    let mut values = [const { None }; N];
    for (key, value) in raw_pairs(query.unwrap_or_default()) {
        // A pair with another first letter has another key, unless the first letter is encoded.
        let begins = |wanted: &&str| wanted.bytes().next() == key.bytes().next();
        if !key.starts_with('%') && !keys.iter().any(begins) {
            continue;
        }
        let Some(key) = unescape(key) else { continue };
        if let Some(index) = keys.iter().position(|wanted| *wanted == key)
            && values[index].is_none()
        {
            values[index] = unescape(value);
        }
    }
    values
}

/// A boolean parameter, with the meaning of [`truth`]. Absent is false.
pub fn flag(query: Option<&str>, key: &str) -> bool {
    first(query, key).as_deref().is_some_and(truth)
}

/// `runtime.Convert_Slice_string_To_bool`: `0` and `false` are false. All other values (also `""`)
/// are true.
pub fn truth(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// One pass byte by byte: on these short texts, searches made for long ones cost more.
fn raw_pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = query;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (mut equals, mut semicolon, mut end) = (None, false, rest.len());
            for (at, byte) in rest.bytes().enumerate() {
                match byte {
                    b'&' => {
                        end = at;
                        break;
                    }
                    b'=' if equals.is_none() => equals = Some(at),
                    b';' => semicolon = true,
                    _ => {}
                }
            }
            let pair = &rest[..end];
            rest = rest.get(end + 1..).unwrap_or_default();
            if !pair.is_empty() && !semicolon {
                return Some(equals.map_or((pair, ""), |at| (&pair[..at], &pair[at + 1..])));
            }
        }
        None
    })
}

fn unescape(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(['%', '+']) {
        return Some(Cow::Borrowed(text));
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            plain => plain,
        });
    }
    // Go keeps invalid UTF-8. No text that we compare with contains any, so replacing it changes no
    // decision.
    Some(Cow::Owned(String::from_utf8_lossy(&decoded).into_owned()))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Vec<(String, String)> {
        pairs(query).map(|(key, value)| (key.into_owned(), value.into_owned())).collect()
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn pairs_are_decoded_and_malformed_ones_dropped() {
        assert_eq!(
            read("a=1&a=2&&b&c=x+y%3d&%zz=1&d=%4&e=1;f=2&g=%"),
            [pair("a", "1"), pair("a", "2"), pair("b", ""), pair("c", "x y=")]
        );
    }

    #[test]
    fn firsts_are_those_of_the_pairs_that_count() {
        let query = Some("b=%zz&a=1&b=2&a=3;c=4&%62=5&d=%41");
        let values = firsts(query, ["a", "b", "c", "d"]);
        assert_eq!(values.each_ref().map(Option::as_deref), [Some("1"), Some("2"), None, Some("A")]);
        assert_eq!(firsts(None, ["a"]), [None]);
    }

    #[test]
    fn parameters_are_counted_as_go_counts_them() {
        for (count, expected) in [(0, false), (MOST_PARAMETERS - 1, false), (MOST_PARAMETERS, true), (20_000, true)] {
            assert_eq!(has_too_many_parameters(&format!("watch=1{}", "&".repeat(count))), expected, "{count}");
            assert_eq!(has_too_many_parameters(&format!("{}watch=1", "a=b&".repeat(count))), expected, "{count}");
        }
        assert!(!has_too_many_parameters(&"a".repeat(20_000)));
    }

    #[test]
    fn flags_follow_kubernetes() {
        for (query, expected) in [
            ("", false),
            ("watch=0", false),
            ("watch=False", false),
            ("watch=false&watch=true", false),
            ("watch", true),
            ("watch=", true),
            ("watch=1", true),
            ("watch=yes", true),
        ] {
            assert_eq!(flag(Some(query), "watch"), expected, "{query}");
        }
        assert!(!flag(None, "watch"));
    }

    proptest::proptest! {
        /// Reads the query step by step, as Go does.
        #[test]
        fn pairs_and_firsts_are_those_of_a_plain_reading(query in "[&=;%+a-dwt67]{0,30}") {
            let plain: Vec<_> = query
                .split('&')
                .filter(|pair| !pair.is_empty() && !pair.contains(';'))
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .collect();
            proptest::prop_assert_eq!(raw_pairs(&query).collect::<Vec<_>>(), plain.clone());
            for wanted in ["a", "wa", "dt"] {
                let mut named = plain.iter().filter(|(key, _)| unescape(key).as_deref() == Some(wanted));
                let expected = named.find_map(|(_, value)| unescape(value));
                proptest::prop_assert_eq!(first(Some(&query), wanted), expected);
            }
        }
    }
}
