//! Removes all credentials and identity claims from a request's headers, whatever happens to the
//! request.
//!
//! Removed are `Authorization`, every `X-Remote-*` and configured front-proxy header, every
//! `Impersonate-*`, and the bearer entry of `Sec-WebSocket-Protocol`. Only the values that a later
//! method needs are kept. So no claim of the caller can reach a member on any path through the
//! program.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

use crate::identity_headers::IdentityHeaders;
use crate::impersonation::{self, Impersonation};

/// Prefix of the standard names, which are removed even if the settings have other names (or are
/// not loaded yet).
const REMOTE_PREFIX: &str = "x-remote-";
/// `k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`
const BEARER_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// The claims of one request, removed from its headers.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) protocol: ProtocolToken,
    pub(crate) impersonation: Option<Impersonation>,
}

/// The token that a browser sends as a WebSocket subprotocol, because it cannot set
/// `Authorization`.
#[derive(Default, PartialEq, Eq)]
pub(crate) enum ProtocolToken {
    #[default]
    Absent,
    Token(Vec<u8>),
    Malformed(&'static str),
}

// === impl Credentials ===

impl Credentials {
    /// Removes the claims from `headers`. `configured` has the front proxy's own names, if known.
    pub(crate) fn take(headers: &mut HeaderMap, configured: Option<&IdentityHeaders>) -> Self {
        let protocol = take_protocol_token(headers);
        let authorization = headers.remove(AUTHORIZATION);
        let mut claims: Vec<HeaderName> = Vec::new(); // allocates only if there is one
        let mut impersonates = false;
        for name in headers.keys() {
            let text = name.as_str();
            let impersonate = text.starts_with(impersonation::PREFIX);
            impersonates |= impersonate;
            if impersonate || text.starts_with(REMOTE_PREFIX) || configured.is_some_and(|own| own.contains(name)) {
                claims.push(name.clone());
            }
        }
        let impersonation = impersonates.then(|| Impersonation::read(headers));
        for name in claims {
            headers.remove(name);
        }
        Self { authorization, protocol, impersonation }
    }
}

/// The token of `Authorization: Bearer <token>`, with the scheme in any case and further words
/// ignored, like `pkg/authentication/request/bearertoken`.
pub(crate) fn bearer(authorization: &HeaderValue) -> Option<&[u8]> {
    let mut words = authorization.as_bytes().trim_ascii().split(|byte| *byte == b' ');
    let scheme = words.next()?;
    let token = words.next()?;
    (scheme.eq_ignore_ascii_case(b"bearer") && !token.is_empty()).then_some(token)
}

// === impl ProtocolToken ===

impl std::fmt::Debug for ProtocolToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Absent => "Absent",
            Self::Token(_) => "Token(..)",
            Self::Malformed(why) => why,
        })
    }
}

/// Removes the bearer entries from the subprotocols, and the header if it has no other entries.
///
/// The entries are removed even from a request that is no WebSocket handshake, where they do not
/// authenticate.
fn take_protocol_token(headers: &mut HeaderMap) -> ProtocolToken {
    let mut others: Vec<&[u8]> = Vec::new();
    let mut bearers: Vec<&[u8]> = Vec::new();
    for value in headers.get_all(SEC_WEBSOCKET_PROTOCOL) {
        for entry in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            match entry.strip_prefix(BEARER_PROTOCOL) {
                Some(encoded) => bearers.push(encoded),
                None => others.push(entry),
            }
        }
    }
    if bearers.is_empty() {
        return ProtocolToken::Absent;
    }
    let token = if is_websocket(headers) { decode(&bearers, !others.is_empty()) } else { ProtocolToken::Absent };
    let rest = HeaderValue::from_bytes(&others.join(&b","[..])).ok().filter(|_| !others.is_empty());
    match rest {
        Some(rest) => drop(headers.insert(SEC_WEBSOCKET_PROTOCOL, rest)),
        None => drop(headers.remove(SEC_WEBSOCKET_PROTOCOL)),
    }
    token
}

/// Without another protocol the server would have none to choose, and the handshake would fail in
/// the browser.
fn decode(bearers: &[&[u8]], has_other: bool) -> ProtocolToken {
    let [encoded] = bearers else { return ProtocolToken::Malformed("websocket: more than one bearer protocol") };
    match URL_SAFE_NO_PAD.decode(encoded) {
        _ if !has_other => ProtocolToken::Malformed("websocket: no subprotocol besides the bearer token"),
        Err(_) => ProtocolToken::Malformed("websocket: the bearer protocol is not base64url"),
        Ok(token) if token.is_empty() => ProtocolToken::Absent,
        Ok(token) => ProtocolToken::Token(token),
    }
}

/// `wsstream.IsWebSocketRequest`: `Upgrade: websocket`, nominated by `Connection`.
fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrades = headers.get_all(CONNECTION).iter().any(|value| {
        value.as_bytes().split(|byte| *byte == b',').any(|token| token.trim_ascii().eq_ignore_ascii_case(b"upgrade"))
    });
    upgrades && headers.get(UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

#[cfg(test)]
mod tests;
