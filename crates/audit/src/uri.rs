//! Removes secrets from request URIs before they are logged.
//!
//! A query can contain a password: exec's `command` does, and people put tokens there. Keys stay,
//! because they describe the request. The values of suspicious keys are removed, and so are values
//! that may be secret under any key, and keys that may be values: `?<token>` has no key.

use std::borrow::Cow;

use crate::origin::cut;

/// Most bytes logged of a URI. A gateway accepts up to 64 KiB.
const LONGEST: usize = 8 * 1024;
/// Replaces removed text.
const HIDDEN: &str = "***";
/// Longest text that counts as a key, in bytes. Kubernetes' longest key has 48.
const LONGEST_KEY: usize = 64;
/// Keys with secret values, in full, in the form of [`plain`].
const SECRET: [&str; 14] = [
    "command",
    "cmd",
    "auth",
    "authorization",
    "key",
    "code",
    "sig",
    "jwt",
    "assertion",
    "pass",
    "sas",
    "otp",
    "pin",
    "pwd",
];
/// Parts of keys with secret values: `access_token`, `X-Amz-Signature`, `client_secret`,
/// `x-api-key`, …
const SECRET_PARTS: [&str; 11] = [
    "token",
    "secret",
    "passw",
    "credential",
    "signature",
    "apikey",
    "accesskey",
    "privatekey",
    "bearer",
    "session",
    "pwd",
];
/// Parameters of Kubernetes' API that have a meaning without a value or with an empty one
/// (`k8s.io/apimachinery`, `meta/v1.ListOptions` and similar types; `k8s.io/api/core/v1`, options
/// of logs, exec and attach).
const WORDS: [&str; 28] = [
    "allowWatchBookmarks",
    "container",
    "continue",
    "dryRun",
    "exact",
    "export",
    "fieldManager",
    "fieldSelector",
    "fieldValidation",
    "follow",
    "force",
    "gracePeriodSeconds",
    "impersonate",
    "labelSelector",
    "limit",
    "orphanDependents",
    "pretty",
    "previous",
    "propagationPolicy",
    "resourceVersion",
    "resourceVersionMatch",
    "sendInitialEvents",
    "stderr",
    "stdin",
    "stdout",
    "timestamps",
    "tty",
    "watch",
];
/// The only parameter with encoded JSON values that are not secret: the position where a list
/// continues.
const CONTINUE: &str = "continue";

/// How much of a query is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Keys, and the values of keys that are not suspicious.
    Usual,
    /// Only the keys: the request acts on a workload with unknown parameters.
    KeysOnly,
}

/// Path and query as received, without secrets, cut if very long.
pub fn redacted(path: &str, query: Option<&str>, detail: Query) -> Box<str> {
    let Some(query) = query else { return cut(path, LONGEST) };
    let mut text = String::with_capacity(path.len() + 1 + query.len());
    text.push_str(path);
    for (number, pair) in query.split('&').enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        push(&mut text, pair, detail);
    }
    cut(&text, LONGEST)
}

fn push(text: &mut String, pair: &str, detail: Query) {
    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
    // Only `=` signs: as likely the padding of an encoded value as the end of a key.
    if value.bytes().all(|byte| byte == b'=') {
        return text.push_str(if pair.is_empty() || value.is_empty() && WORDS.contains(&key) { pair } else { HIDDEN });
    }
    text.push_str(if key.len() > LONGEST_KEY || is_encoded(key) { HIDDEN } else { key });
    if detail == Query::Usual {
        text.push('=');
        text.push_str(if is_secret(key, value) { HIDDEN } else { value });
    }
}

/// Go drops pairs with a `;`, but others treat it as a separator: the text after it may be any
/// key's value.
fn is_secret(key: &str, value: &str) -> bool {
    if key.contains(';') || value.contains(';') {
        return true;
    }
    let Some(name) = plain(key) else { return true };
    SECRET.contains(&&*name) || SECRET_PARTS.iter().any(|part| name.contains(part)) || gives_away(key, value)
}

/// Whether `value` is secret under any key: a URL with a password, or JSON in the encoding of
/// tokens.
fn gives_away(key: &str, value: &str) -> bool {
    let Ok(value) = percent_encoding::percent_decode_str(value).decode_utf8() else { return true };
    let with_password = value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    with_password || key != CONTINUE && is_encoded(&value)
}

/// Whether `text` contains the start of a JSON object in base64, as JSON Web Tokens do (RFC 7515
/// §3.3).
fn is_encoded(text: &str) -> bool {
    text.contains("eyJ")
}

/// The key in lower case, without word separators. `None` if it does not decode to text.
fn plain(key: &str) -> Option<Cow<'_, str>> {
    if key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Some(Cow::Borrowed(key));
    }
    let text = percent_encoding::percent_decode_str(key).decode_utf8().ok()?;
    Some(Cow::Owned(text.to_lowercase().replace(['-', '_', '.'], "")))
}

#[cfg(test)]
mod tests;
