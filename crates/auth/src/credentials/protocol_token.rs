//! A bearer token among the protocols of a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{CONNECTION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL, UPGRADE};

/// `k8s.io/apiserver/pkg/authentication/request/websocket/protocol.go`
pub(super) const BEARER_PROTOCOL: &[u8] = b"base64url.bearer.authorization.k8s.io.";

/// The token that a browser sends as a WebSocket subprotocol, because it cannot set
/// `Authorization`.
#[derive(Default, PartialEq, Eq)]
pub(crate) enum ProtocolToken {
    #[default]
    Absent,
    Token(Vec<u8>),
    Malformed(&'static str),
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
pub(super) fn take_protocol_token(headers: &mut HeaderMap) -> ProtocolToken {
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
