//! Which headers cross the gateway.
//!
//! Hop-by-hop headers end here (RFC 9110 §7.6.1), among them every header the sender names in
//! `Connection`: that happens after authentication and before our own credential is set, so that
//! naming a header there can neither hide an identity nor drop a credential (CVE-2021-31999,
//! CVE-2022-31813). Identity never crosses, in any spelling.

pub mod size;

use http::header::{self, CONNECTION, FORWARDED, HeaderName, TE, VIA, WARNING};
use http::{HeaderMap, HeaderValue};

/// How we sign `Via`, to notice requests that come back.
const PSEUDONYM: &str = "cluster-gateway";
/// A request may pass this many gateways in a row (hubs of hubs), then it is a loop.
const MAX_HOPS: usize = 8;
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// More header lines than this in one message are refused: beside the limit on bytes, because
/// tables of headers have one of their own, and exceeding that is no error but a panic
/// (`http::HeaderMap`: 24,576).
pub const MOST_LINES: usize = 8192;

/// As many names to remove as are kept on the stack.
const FEW: usize = 4;

/// The request came through gateways like this one too often.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyHops;

/// Makes a client's headers fit for the member: hop-by-hop, identity and cookie headers are
/// removed, `Via` and `X-Forwarded-For` extended by `client`, an address. The credential is set by
/// the caller, last.
pub fn to_member(headers: &mut HeaderMap, client: &HeaderValue) -> Result<(), TooManyHops> {
    let wants_trailers = headers.get_all(TE).iter().any(|value| has_token(value, "trailers"));
    remove_nominated(headers);
    remove(headers, stays_here);
    if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
    }
    extend_via(headers)?;
    extend_forwarded_for(headers, client);
    Ok(())
}

/// Makes a member's headers fit for the client.
pub fn to_client(headers: &mut HeaderMap) {
    remove_nominated(headers);
    remove(headers, |name| {
        // The last is a redirect by another name, which browsers follow with any answer.
        let is_known =
            matches!(*name, header::SET_COOKIE | header::ALT_SVC | header::STRICT_TRANSPORT_SECURITY | header::REFRESH);
        is_known || is_standard_hop_by_hop(name) || {
            let name = name.as_str();
            is_other_hop_by_hop(name) || speaks_for_the_origin(name)
        }
    });
}

/// Makes a client's trailers fit for the member: what may not come as a header may not come as a
/// trailer.
pub fn trailers_to_member(trailers: &mut HeaderMap) {
    remove(trailers, stays_here);
}

/// Adds a warning as Kubernetes' API servers write it (RFC 7234 §5.5), of which `longest` bytes of
/// text at most.
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

/// Whether a comma-separated header value holds `token`, in any case.
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

fn remove(headers: &mut HeaderMap, doomed: impl Fn(&HeaderName) -> bool) {
    // Usually two or three of a dozen: collecting their names beats looking up every name of the
    // list. The first few need no allocation.
    let mut first: [Option<HeaderName>; FEW] = [const { None }; FEW];
    let mut names = headers.keys().filter(|name| doomed(name)).cloned();
    first.fill_with(|| names.next());
    let rest: Vec<HeaderName> = names.collect();
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

/// What browsers apply to everything of an origin, which here is that of all clusters.
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

/// Some servers read `_` in a header name as `-`: such spellings must not slip through either.
fn is_identity(name: &str, prefix: &str) -> bool {
    name.len() >= prefix.len()
        && name.bytes().zip(prefix.bytes()).all(|(byte, wanted)| byte == wanted || (byte == b'_' && wanted == b'-'))
}

fn extend_via(headers: &mut HeaderMap) -> Result<(), TooManyHops> {
    if !headers.contains_key(VIA) {
        headers.insert(VIA, HeaderValue::from_static("2.0 cluster-gateway"));
        return Ok(());
    }
    let ours = |token: &[u8]| token.ends_with(PSEUDONYM.as_bytes());
    let hops = headers.get_all(VIA).iter().flat_map(tokens).filter(|token| ours(token)).count();
    if hops >= MAX_HOPS {
        return Err(TooManyHops);
    }
    headers.append(VIA, HeaderValue::from_static("2.0 cluster-gateway"));
    Ok(())
}

/// Appends the peer's address to the chain, in one line as its readers expect.
fn extend_forwarded_for(headers: &mut HeaderMap, client: &HeaderValue) {
    if !headers.contains_key(&X_FORWARDED_FOR) {
        headers.insert(X_FORWARDED_FOR.clone(), client.clone());
        return;
    }
    let mut chain = Vec::new();
    for value in headers.get_all(&X_FORWARDED_FOR) {
        chain.extend_from_slice(value.as_bytes());
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(client.as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&chain) {
        headers.insert(X_FORWARDED_FOR.clone(), value);
    }
}

#[cfg(test)]
mod tests;
