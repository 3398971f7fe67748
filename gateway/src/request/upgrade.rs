//! The wish of a request to go on as something else than HTTP (RFC 9110 §7.8).

use http::header::{CONNECTION, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderValue, Request, Version};

use crate::error::Error;
use crate::headers;
use crate::request_body::RequestBody;

/// An upgrade to a protocol that Kubernetes speaks.
pub struct Upgrade {
    protocol: Vec<HeaderValue>,
}

/// HTTP/2 has no such wish.
pub fn is_asked_by(request: &Request<RequestBody>) -> bool {
    request.version() < Version::HTTP_2
        && request.headers().get_all(CONNECTION).iter().any(|value| headers::has_token(value, "upgrade"))
}

// === impl Upgrade ===

impl Upgrade {
    /// The one that a request asks for.
    ///
    /// Only protocols of Kubernetes pass: forwarding others, such as `h2c`, would smuggle requests
    /// past every check made here (CVE-2022-41721). A hub sends anything whose `Connection` holds
    /// the word on this path, so half-made requests are answered rather than served.
    pub fn of(request: &Request<RequestBody>) -> Result<Self, Error> {
        let protocol: Vec<_> = request.headers().get_all(UPGRADE).iter().cloned().collect();
        if protocol.is_empty() {
            return Err(Error::BadRequest("Upgrade request required"));
        }
        if !protocol.iter().all(is_known) {
            return Err(Error::BadRequest("only upgrades to websocket and SPDY/3.1 are served"));
        }
        if request.headers().contains_key(TRANSFER_ENCODING) {
            return Err(Error::BadRequest("an upgrade request must not have a chunked body"));
        }
        Ok(Self { protocol })
    }

    /// The answer's, where a member switches protocols.
    pub fn agreed(headers: &HeaderMap) -> Self {
        Self { protocol: headers.get_all(UPGRADE).iter().cloned().collect() }
    }

    /// Writes it into the head of a message that names no protocol yet.
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
