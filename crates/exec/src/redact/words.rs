//! Removes text that looks like a secret: PEM blocks, JSON Web Tokens, and long random words.

use super::MASK;

/// Shortest random word: keys and tokens have 128 bits or more.
const LONG: usize = 32;
/// `{"` in base64: the start of each JSON part of a JSON Web Token (RFC 7519).
const JWT: &str = "eyJ";
const LONG_JWT: usize = 12;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// Removes PEM blocks, including incomplete ones.
pub(super) fn pem(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let (begin, end) = (rest.find(BEGIN), rest.find(END));
        match (begin, end) {
            (None, None) => {
                clean.push_str(rest);
                return clean;
            }
            // The block began before the text that was kept.
            (begin, Some(end)) if begin.is_none_or(|begin| end < begin) => clean.clear(),
            (begin, _) => clean.push_str(&rest[..begin.unwrap_or_default()]),
        }
        clean.push_str(MASK);
        let Some(end) = end else { return clean };
        let after = &rest[end + END.len()..];
        rest = after.find(DASHES).map_or("", |label| &after[label + DASHES.len()..]);
    }
}

/// Removes words that look random.
pub(super) fn random(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_of_word) {
        clean.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        if word.contains('/') && !is_slashed_secret(word) {
            // A path, or a part of a path or URL: treat each segment as a word.
            let steps: Vec<_> = word.split('/').map(masked).collect();
            clean.push_str(&steps.join("/"));
        } else {
            clean.push_str(masked(word));
        }
        rest = after;
    }
    clean.push_str(rest);
    clean
}

/// The characters of both base64 alphabets and of most tokens. Without the dot, so that host names
/// stay readable.
fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '_' | '-' | '=' | '~')
}

fn masked(word: &str) -> &str {
    let is_jwt = word.len() >= LONG_JWT && word.contains(JWT);
    let is_random = word.len() >= LONG && has(word, u8::is_ascii_digit) && has(word, u8::is_ascii_alphabetic);
    if is_jwt || is_random { MASK } else { word }
}

/// Base64 with slashes has letters of both cases. Paths nearly always start with a slash or are
/// lower-case.
fn is_slashed_secret(word: &str) -> bool {
    word.len() >= LONG
        && !word.starts_with('/')
        && has(word, u8::is_ascii_digit)
        && has(word, u8::is_ascii_uppercase)
        && has(word, u8::is_ascii_lowercase)
}

fn has(word: &str, kind: fn(&u8) -> bool) -> bool {
    word.bytes().any(|byte| kind(&byte))
}
