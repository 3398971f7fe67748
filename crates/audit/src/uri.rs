//! Request URIs without what must not be written down.
//!
//! A query can carry a password: exec's `command` does, and people put tokens there. Keys stay,
//! because they say what was asked; values of suspicious keys go, and so does every value that may
//! not be innocent, and every key that may be none: `?<token>` has no key.

use std::borrow::Cow;

use crate::origin::cut;

/// Bytes of a URI written; a gateway takes up to 64 KiB.
const LONGEST: usize = 8 * 1024;
/// Stands for what was there.
const HIDDEN: &str = "***";
/// Longest text taken for a key, in bytes; Kubernetes' longest has 48.
const LONGEST_KEY: usize = 64;
/// Keys whose values are secret, whole, as [`plain`] writes them.
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
/// Parts of keys whose values are secret: `access_token`, `X-Amz-Signature`, `client_secret`,
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
/// Parameters of Kubernetes' API that mean something without a value (`k8s.io/apimachinery`,
/// `meta/v1.ListOptions` and its kind; `k8s.io/api/core/v1`, options of logs, exec and attach), or
/// come with an empty one.
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
/// The one parameter whose values are encoded JSON and no secret: where a list goes on.
const CONTINUE: &str = "continue";

/// How much of a query may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// Keys, and the values of keys that are not suspicious.
    Usual,
    /// Keys alone: the request acts on a workload, whose parameters are unknown.
    KeysOnly,
}

/// Path and query as received, secrets left out, cut where it is very long.
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
    // Nothing but `=`: the padding of something encoded, as likely as the end of a key.
    if value.bytes().all(|byte| byte == b'=') {
        return text.push_str(if pair.is_empty() || value.is_empty() && WORDS.contains(&key) { pair } else { HIDDEN });
    }
    text.push_str(if key.len() > LONGEST_KEY || is_encoded(key) { HIDDEN } else { key });
    if detail == Query::Usual {
        text.push('=');
        text.push_str(if is_secret(key, value) { HIDDEN } else { value });
    }
}

/// Go drops pairs with a `;`, while others take it for a separator: what follows it may be any
/// key's value.
fn is_secret(key: &str, value: &str) -> bool {
    if key.contains(';') || value.contains(';') {
        return true;
    }
    let Some(name) = plain(key) else { return true };
    SECRET.contains(&&*name) || SECRET_PARTS.iter().any(|part| name.contains(part)) || gives_away(key, value)
}

/// Whether `value` is secret under any key: a URL that holds a password, or JSON in the encoding of
/// tokens.
fn gives_away(key: &str, value: &str) -> bool {
    let Ok(value) = percent_encoding::percent_decode_str(value).decode_utf8() else { return true };
    let with_password = value.split_once("://").is_some_and(|(_, rest)| rest.contains('@'));
    with_password || key != CONTINUE && is_encoded(&value)
}

/// Whether `text` holds the beginning of a JSON object in base64, as JSON Web Tokens do (RFC 7515
/// §3.3).
fn is_encoded(text: &str) -> bool {
    text.contains("eyJ")
}

/// In lower case and without what separates words; `None` if it does not decode to text.
fn plain(key: &str) -> Option<Cow<'_, str>> {
    if key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
        return Some(Cow::Borrowed(key));
    }
    let text = percent_encoding::percent_decode_str(key).decode_utf8().ok()?;
    Some(Cow::Owned(text.to_lowercase().replace(['-', '_', '.'], "")))
}

#[cfg(test)]
mod tests;
