//! Reads the user from a front proxy's headers, and remembers users already read from the same
//! bytes.
//!
//! A hub sends the requests of all its users over few connections, and repeats the same header
//! lines for each user. So the usual request finds its `User` by one hash of those lines, without
//! allocating.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::quality::RandomState;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::IdentityHeaders;
use crate::review::Opinion;
use crate::user::User;

/// Users remembered for one connection. When full, all are forgotten, because to read one again
/// takes only a microsecond.
const MAX_IDENTITIES: usize = 256;
/// Longest header bytes that are remembered.
const MAX_REMEMBERED_BYTES: usize = 8 * 1024;
/// Most memory of a connection's headers and users. When full, all are forgotten, too.
const MAX_BYTES: usize = 2 << 20;

/// Users by the exact bytes of their identity headers.
#[derive(Debug, Default)]
pub(crate) struct IdentityCache {
    generation: u64,
    /// With a hash that is fast on the kilobyte of a user with many groups. Keys are few, and the
    /// hub chooses them.
    users: HashMap<Box<[u8]>, Arc<User>, RandomState>,
    /// Memory of `users`.
    bytes: usize,
    scratch: Vec<u8>,
}

/// A header with the user's identity is not UTF-8. Read with replacement characters, it would make
/// two users one.
#[derive(Debug, PartialEq, Eq)]
struct NotUtf8;

// === impl IdentityCache ===

impl IdentityCache {
    /// The user in `headers`. `generation` is that of the settings with `names`.
    pub(crate) fn user(&mut self, headers: &HeaderMap, names: &IdentityHeaders, generation: u64) -> Opinion {
        if self.generation != generation {
            self.forget();
            self.generation = generation;
        }
        self.write_key(headers, names);
        if let Some(user) = self.users.get(self.scratch.as_slice()) {
            return Opinion::User(Arc::clone(user));
        }
        match parse(headers, names) {
            Ok(None) => Opinion::None,
            Err(NotUtf8) => Opinion::Refused(Arc::from("front proxy: an identity header is not UTF-8")),
            Ok(Some(user)) => {
                let user = Arc::new(user);
                self.remember(&user);
                Opinion::User(user)
            }
        }
    }

    fn remember(&mut self, user: &Arc<User>) {
        if self.scratch.len() > MAX_REMEMBERED_BYTES {
            self.scratch = Vec::new();
            return;
        }
        let bytes = self.scratch.len() + user.bytes();
        if self.users.len() >= MAX_IDENTITIES || self.bytes + bytes > MAX_BYTES {
            self.forget();
        }
        self.bytes += bytes;
        self.users.insert(self.scratch.as_slice().into(), Arc::clone(user));
    }

    fn forget(&mut self) {
        self.users.clear();
        self.bytes = 0;
    }

    /// Writes all that `parse` reads, each value with its kind and length, so that no two requests
    /// can share a key by moving bytes from one header into the next.
    fn write_key(&mut self, headers: &HeaderMap, names: &IdentityHeaders) {
        self.scratch.clear();
        for (kind, list) in [(b'u', &names.user), (b'i', &names.uid), (b'g', &names.group)] {
            for name in list {
                // Not the kind of any value, so that an empty value is not the beginning of the
                // next header.
                self.scratch.push(b'|');
                headers.get_all(name).iter().for_each(|value| self.write(kind, value.as_bytes()));
            }
        }
        for (name, value) in headers {
            if names.extra_prefixes.iter().any(|prefix| name.as_str().starts_with(&**prefix)) {
                self.write(b'k', name.as_str().as_bytes());
                self.write(b'v', value.as_bytes());
            }
        }
    }

    fn write(&mut self, kind: u8, bytes: &[u8]) {
        self.scratch.push(kind);
        self.scratch.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        self.scratch.extend_from_slice(bytes);
    }
}

/// `requestHeaderAuthRequestHandler.AuthenticateRequest`: the first non-empty user name, all
/// non-empty groups, all extra attributes.
fn parse(headers: &HeaderMap, names: &IdentityHeaders) -> Result<Option<User>, NotUtf8> {
    let Some(name) = first(headers, &names.user)? else { return Ok(None) };
    let groups = names
        .group
        .iter()
        .flat_map(|name| headers.get_all(name))
        .filter(|value| !value.is_empty())
        .map(text)
        .collect::<Result<_, _>>()?;
    let user = User { name, uid: first(headers, &names.uid)?, groups, extra: extra(headers, &names.extra_prefixes)? };
    Ok(Some(user.with_authenticated_group()))
}

fn first(headers: &HeaderMap, names: &[HeaderName]) -> Result<Option<String>, NotUtf8> {
    let mut values = names.iter().filter_map(|name| headers.get(name));
    values.find(|value| !value.is_empty()).map(text).transpose()
}

/// Prefixes are the outer loop, so that values of one key keep the order of the configured
/// prefixes.
fn extra(headers: &HeaderMap, prefixes: &[Box<str>]) -> Result<BTreeMap<String, Vec<String>>, NotUtf8> {
    let mut extra = BTreeMap::<String, Vec<String>>::new();
    for prefix in prefixes {
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(&**prefix) {
                extra.entry(unescape_key(key)).or_default().push(text(value)?);
            }
        }
    }
    Ok(extra)
}

fn text(value: &HeaderValue) -> Result<String, NotUtf8> {
    std::str::from_utf8(value.as_bytes()).map(str::to_owned).map_err(|_| NotUtf8)
}

/// The key of an extra attribute, from the rest of a lower-case header name after the prefix:
/// percent-decoded like Go's `url.PathUnescape`, or unchanged if that fails.
pub(crate) fn unescape_key(raw: &str) -> String {
    decode(raw.as_bytes()).and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_else(|| raw.to_owned())
}

/// `None` if a `%` is not followed by two hexadecimal digits.
fn decode(mut raw: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(raw.len());
    while let Some((&byte, rest)) = raw.split_first() {
        raw = rest;
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let (digits, rest) = raw.split_at_checked(2)?;
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        decoded.push(digit(digits[0])? << 4 | digit(digits[1])?);
        raw = rest;
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_with_many_short_groups_are_remembered_within_the_limit() {
        let names = IdentityHeaders::new(&["u".to_owned()], &[], &["g".to_owned()], &[]);
        let mut cache = IdentityCache::default();
        for number in 0..MAX_IDENTITIES {
            let mut headers = HeaderMap::new();
            headers.insert("u", HeaderValue::from(number));
            for _ in 0..700 {
                headers.append("g", HeaderValue::from_static("g"));
            }
            assert!(matches!(cache.user(&headers, &names, 0), Opinion::User(_)));
            let held: usize = cache.users.iter().map(|(key, user)| key.len() + user.bytes()).sum();
            assert!(held > 0 && held <= MAX_BYTES && held == cache.bytes, "{held} and {} bytes", cache.bytes);
        }
        assert!(cache.users.len() < MAX_IDENTITIES);
    }
}
