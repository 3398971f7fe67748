//! Request URIs without what must not be written down.
//!
//! A query can carry a password: exec's `command` does, and people put tokens there. Keys stay, because they say what was
//! asked; values of suspicious keys go, and so does every value that cannot be told to be innocent.

use std::borrow::Cow;

use crate::origin::cut;

/// Bytes of a URI written; a gateway takes up to 64 KiB.
const LONGEST: usize = 8 * 1024;
/// Stands for a value that was there.
const HIDDEN: &str = "***";
/// Keys whose values are secret, whole and in lower case.
const SECRET: [&str; 10] =
    ["command", "cmd", "auth", "authorization", "key", "code", "sig", "jwt", "assertion", "pass"];
/// Parts of keys whose values are secret: `access_token`, `X-Amz-Signature`, `client_secret`, …
const SECRET_PARTS: [&str; 7] = ["token", "secret", "passw", "credential", "signature", "apikey", "api_key"];

/// How much of a query may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Keys, and the values of keys that are not suspicious.
    Usual,
    /// Keys alone: what is asked for acts on a workload, and who knows what that understands.
    KeysOnly,
}

/// Path and query as received, secrets left out, cut where it is very long.
pub fn redacted(path: &str, query: Option<&str>, detail: Query) -> Box<str> {
    let Some(query) = query else { return cut(path, LONGEST) };
    let mut text = String::with_capacity(path.len() + 1 + query.len());
    text.push_str(path);
    for (number, pair) in query.split('&').enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        let (key, value) = pair.split_once('=').map_or((pair, None), |(key, value)| (key, Some(value)));
        text.push_str(key);
        if let Some(value) = value.filter(|_| detail == Query::Usual) {
            text.push('=');
            text.push_str(if value.is_empty() || !is_secret(key, value) { value } else { HIDDEN });
        }
    }
    cut(&text, LONGEST)
}

/// Go drops pairs with a `;`, while others take it for a separator: what follows it may be any key's value.
fn is_secret(key: &str, value: &str) -> bool {
    if key.contains(';') || value.contains(';') {
        return true;
    }
    let Some(key) = decoded(key) else { return true };
    SECRET.contains(&&*key) || SECRET_PARTS.iter().any(|part| key.contains(part))
}

/// In lower case; `None` if it does not decode to text.
fn decoded(key: &str) -> Option<Cow<'_, str>> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_');
    if key.bytes().all(plain) {
        return Some(Cow::Borrowed(key));
    }
    let text = percent_encoding::percent_decode_str(key).decode_utf8().ok()?;
    Some(Cow::Owned(text.to_lowercase()))
}

#[cfg(test)]
mod tests;
