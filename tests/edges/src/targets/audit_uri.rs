//! Any query in the audit log: no value of a suspicious key, no credential under any key, and, of
//! requests that act on workloads, no value at all.
//!
//! Input: one byte that selects what is hidden where, a key, a line end, and the rest of the query.

use audit::{Query, redacted};

pub const WORDS: &[&str] = &[
    "token",
    "access_token",
    "X-Amz-Signature",
    "client.secret",
    "p%61ssword",
    "PassWord",
    "bearer",
    "command",
    "continue",
    "watch",
    "=",
    "==",
    "&",
    ";",
    "%",
    "%zz",
    "%ff",
    "%3d",
    "%26",
    "+",
    "\n",
    "eyJ",
    "https://",
    "@",
    "limit=5",
    "resourceVersion=1",
    "é",
    "?",
];

const PATH: &str = "/api/v1/pods";
const SECRET: &str = "canary9f3";
/// Some parts that make a key suspicious.
const SUSPICIOUS: [&str; 4] = ["token", "secret", "password", "bearer"];

pub fn check(input: &[u8]) {
    let Some((first, text)) = input.split_first() else { return };
    let Some((key, around)) = std::str::from_utf8(text).ok().and_then(|text| text.split_once('\n')) else { return };
    if text.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) || key.contains(['&', '=']) {
        return;
    }
    let (detail, pair) = match first % 5 {
        0 if is_suspicious(key) => (Query::Usual, format!("{key}={SECRET}")),
        1 => (Query::KeysOnly, format!("{key}={SECRET}")),
        2 if key != "continue" => (Query::Usual, format!("{key}=eyJ{SECRET}")),
        3 => (Query::Usual, format!("{key}=x%3A%2F%2Fjane:{SECRET}@host")),
        4 => (Query::Usual, SECRET.to_owned()),
        _ => return,
    };
    let query = format!("{around}&{pair}&{around}");
    let written = redacted(PATH, Some(&query), detail);
    assert!(!written.contains(SECRET), "{query} is written as {written}");
    assert!(written.starts_with(PATH), "{written}");
}

/// Decides by the decoded key, however it is spelled.
fn is_suspicious(key: &str) -> bool {
    let Ok(decoded) = percent_encoding::percent_decode_str(key).decode_utf8() else { return false };
    let letters: String = decoded.chars().filter(|c| !"-_.".contains(*c)).collect();
    SUSPICIOUS.iter().any(|word| letters.to_ascii_lowercase().contains(word))
}
