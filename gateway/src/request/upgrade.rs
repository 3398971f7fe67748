//! Upgrade requests (RFC 9110 §7.8).

use http::header::{CONNECTION, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Version};

use super::framing;
use crate::error::Error;
use crate::request_body::RequestBody;

/// An upgrade to a protocol of Kubernetes.
pub struct Upgrade {
    protocol: Vec<HeaderValue>,
}

/// Never true for HTTP/2, which has no such upgrade.
pub fn is_asked_by(request: &Request<RequestBody>) -> bool {
    request.version() < Version::HTTP_2 && framing::leaves_http(request)
}

// === impl Upgrade ===

impl Upgrade {
    /// The upgrade that a request asks for.
    ///
    /// Only protocols of Kubernetes pass: forwarding others, such as `h2c`, would smuggle requests
    /// past every check made here (CVE-2022-41721). A hub treats any request with `upgrade` in
    /// `Connection` as an upgrade, so an incomplete one is refused, and not served as a plain
    /// request.
    pub fn of(request: &Request<RequestBody>) -> Result<Self, Error> {
        let protocol: Vec<_> = request.headers().get_all(UPGRADE).iter().cloned().collect();
        if protocol.is_empty() {
            return Err(Error::BadRequest("Upgrade request required"));
        }
        if !protocol.iter().all(is_known) {
            return Err(Error::BadRequest("only upgrades to websocket and SPDY/3.1 are served"));
        }
        if framing::is_chunked(request.headers()) {
            return Err(Error::BadRequest("an upgrade request must not have a chunked body"));
        }
        Ok(Self { protocol })
    }

    /// The protocol of a member's 101.
    pub fn agreed(headers: &HeaderMap) -> Self {
        Self { protocol: headers.get_all(UPGRADE).iter().cloned().collect() }
    }

    /// Writes `Connection` and `Upgrade` into a head that has no `Upgrade` yet.
    pub fn write(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        for value in &self.protocol {
            headers.append(UPGRADE, value.clone());
        }
    }
}

fn is_known(value: &HeaderValue) -> bool {
    let value = value.as_bytes().trim_ascii();
    value.eq_ignore_ascii_case(b"websocket") || value.eq_ignore_ascii_case(b"SPDY/3.1")
}
