//! Removes all credentials and identity claims from a request's headers, whatever happens to the
//! request.
//!
//! Removed are `Authorization`, every `X-Remote-*` and configured front-proxy header, every
//! `Impersonate-*`, and the bearer entry of `Sec-WebSocket-Protocol`. Only the values that a later
//! method needs are kept. So no claim of the caller can reach a member on any path through the
//! program.

mod protocol_token;

use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};

use self::protocol_token::take_protocol_token;
use crate::identity_headers::IdentityHeaders;
use crate::impersonation::{self, Impersonation};

pub(crate) use self::protocol_token::ProtocolToken;

/// Prefix of the standard names, which are removed even if the settings have other names (or are
/// not loaded yet).
const REMOTE_PREFIX: &str = "x-remote-";

/// The claims of one request, removed from its headers.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    pub(crate) authorization: Option<HeaderValue>,
    pub(crate) protocol: ProtocolToken,
    pub(crate) impersonation: Option<Impersonation>,
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

#[cfg(test)]
mod tests;
