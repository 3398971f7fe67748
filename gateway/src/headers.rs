//! Decides which headers cross the gateway.
//!
//! Hop-by-hop headers are removed (RFC 9110 §7.6.1), including every header that the sender names
//! in `Connection`. That happens after authentication and before our own credential is set, so that
//! a header named there can neither hide an identity nor drop a credential (CVE-2021-31999,
//! CVE-2022-31813). Identity headers never cross, in any spelling.

pub mod size;

use http::header::{self, CONNECTION, Entry, FORWARDED, HeaderName, TE, VIA, WARNING};
use http::{HeaderMap, HeaderValue};

/// Our name in `Via`, by which requests that come back are recognized.
const PSEUDONYM: &str = "cluster-gateway";
/// Most gateways in a row (hubs of hubs). More of them are a loop.
const MAX_HOPS: usize = 8;
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Most header lines of one message, in addition to the limit on bytes: tables of headers have
/// their own limit, and to exceed it is no error but a panic (`http::HeaderMap`: 24,576).
pub const MOST_LINES: usize = 8192;

/// Number of names to remove that fit on the stack.
const FEW: usize = 4;

/// The request passed too many gateways like this one.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyHops;

/// Prepares a client's headers for the member: removes hop-by-hop, identity and cookie headers,
/// adds this gateway to `Via`, and the address `client` to `X-Forwarded-For`. Fails if the request
/// passed too many gateways. The caller of this function then sets the credential, last.
pub fn to_member(headers: &mut HeaderMap, client: &HeaderValue) -> Result<(), TooManyHops> {
    let mut wants_trailers = false;
    remove(headers, stays_here, |headers| {
        wants_trailers = headers.get_all(TE).iter().any(|value| has_token(value, "trailers"));
        remove_nominated(headers);
    });
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    extend_via(headers)?;
    extend_forwarded_for(headers, client);
    Ok(())
}

/// Prepares a member's headers for the client.
pub fn to_client(headers: &mut HeaderMap) {
    let stays_there = |name: &HeaderName| {
        // The last one redirects like `Location`, and browsers follow it in any response.
        let is_known =
            matches!(*name, header::SET_COOKIE | header::ALT_SVC | header::STRICT_TRANSPORT_SECURITY | header::REFRESH);
        is_known || is_standard_hop_by_hop(name) || {
            let name = name.as_str();
            is_other_hop_by_hop(name) || speaks_for_the_origin(name)
        }
    };
    remove(headers, stays_there, remove_nominated);
}

/// Prepares a client's trailers for the member: headers that must not pass must not pass as
/// trailers, either.
pub fn trailers_to_member(trailers: &mut HeaderMap) {
    remove(trailers, stays_here, |_| {});
}

/// Adds a warning in the form of Kubernetes' API servers (RFC 7234 §5.5), with at most `longest`
/// bytes of text.
pub fn warn(headers: &mut HeaderMap, text: &str, longest: usize) {
    let mut escaped = String::new();
    for character in text.chars().map(char::escape_default) {
        if escaped.len() + character.len() > longest {
            break;
        }
        escaped.extend(character);
    }
    if let Ok(value) = HeaderValue::try_from(format!("299 - \"{escaped}\"")) {
        headers.append(WARNING, value);
    }
}

/// Whether a comma-separated header value contains `token`, in any case.
pub fn has_token(value: &HeaderValue, token: &str) -> bool {
    tokens(value).any(|found| found.eq_ignore_ascii_case(token.as_bytes()))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|token| !token.is_empty())
}

fn remove_nominated(headers: &mut HeaderMap) {
    if !headers.contains_key(CONNECTION) {
        return;
    }
    let nominated: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(tokens)
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        .collect();
    for name in nominated {
        headers.remove(name);
    }
}

/// Removes the doomed headers. `before` is called only if there is one: with hop-by-hop headers
/// doomed, their lines need not be looked for in the messages that have none.
fn remove(headers: &mut HeaderMap, doomed: impl Fn(&HeaderName) -> bool, before: impl FnOnce(&mut HeaderMap)) {
    // Usually none, or two or three of a dozen: to collect their names is faster than to look up
    // every name of the list. The first few need no allocation.
    let mut names = headers.keys().filter(|name| doomed(name)).cloned().peekable();
    if names.peek().is_none() {
        return;
    }
    let mut first: [Option<HeaderName>; FEW] = [const { None }; FEW];
    first.fill_with(|| names.next());
    let rest: Vec<HeaderName> = names.collect();
    before(headers);
    for name in first.into_iter().flatten().chain(rest) {
        headers.remove(name);
    }
}

fn is_standard_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        *name,
        CONNECTION
            | header::PROXY_AUTHENTICATE
            | header::PROXY_AUTHORIZATION
            | TE
            | header::TRANSFER_ENCODING
            | header::UPGRADE
    )
}

fn is_other_hop_by_hop(name: &str) -> bool {
    matches!(name, "keep-alive" | "proxy-connection" | "http2-settings")
}

/// Headers that browsers apply to a whole origin, which all clusters share here.
fn speaks_for_the_origin(name: &str) -> bool {
    matches!(
        name,
        "clear-site-data"
            | "service-worker-allowed"
            | "nel"
            | "report-to"
            | "reporting-endpoints"
            | "origin-agent-cluster"
            | "accept-ch"
    )
}

fn stays_here(name: &HeaderName) -> bool {
    if is_standard_hop_by_hop(name) {
        return true;
    }
    match *name {
        header::AUTHORIZATION | header::COOKIE | header::EXPECT | header::HOST | header::TRAILER | FORWARDED => true,
        _ => {
            let name = name.as_str();
            is_other_hop_by_hop(name)
                || matches!(name, "x-forwarded-host" | "x-forwarded-proto" | "x-forwarded-uri")
                || is_identity(name, "x-remote-")
                || is_identity(name, "impersonate-")
        }
    }
}

/// Some servers read `_` in a header name as `-`, so such spellings must not pass, either.
fn is_identity(name: &str, prefix: &str) -> bool {
    name.len() >= prefix.len()
        && name.bytes().zip(prefix.bytes()).all(|(byte, wanted)| byte == wanted || (byte == b'_' && wanted == b'-'))
}

fn extend_via(headers: &mut HeaderMap) -> Result<(), TooManyHops> {
    let hop = HeaderValue::from_static("2.0 cluster-gateway");
    match headers.entry(VIA) {
        Entry::Vacant(none) => {
            none.insert(hop);
        }
        Entry::Occupied(mut chain) => {
            let ours = |token: &[u8]| token.ends_with(PSEUDONYM.as_bytes());
            let hops = chain.iter().flat_map(tokens).filter(|token| ours(token)).count();
            if hops >= MAX_HOPS {
                return Err(TooManyHops);
            }
            chain.append(hop);
        }
    }
    Ok(())
}

/// Appends the peer's address to the chain, in one line, as its readers expect.
fn extend_forwarded_for(headers: &mut HeaderMap, client: &HeaderValue) {
    match headers.entry(&X_FORWARDED_FOR) {
        Entry::Vacant(none) => {
            none.insert(client.clone());
        }
        Entry::Occupied(mut known) => {
            let chain: Vec<&[u8]> = known.iter().chain([client]).map(HeaderValue::as_bytes).collect();
            if let Ok(value) = HeaderValue::from_bytes(&chain.join(&b", "[..])) {
                known.insert(value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
