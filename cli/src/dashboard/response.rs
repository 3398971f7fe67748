//! Responses to a browser: their headers and bodies.

use std::convert::Infallible;

use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};

/// Headers of every response. Nothing is loaded from elsewhere, nothing inline runs, no page frames
/// it, and browsers never send on the address, which is the key to it.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Adds the headers of every response.
pub fn finished(mut response: Response<Body>) -> Response<Body> {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A plain-text response with `status`, for a person whose request is refused.
pub fn text(status: StatusCode, words: &'static str) -> Response<Body> {
    let mut response = full("text/plain; charset=utf-8", words);
    *response.status_mut() = status;
    response
}

/// A response with a complete body.
pub fn full(content_type: &'static str, body: impl Into<Bytes>) -> Response<Body> {
    of_type(content_type, Full::new(body.into()).boxed_unsync())
}

/// A response with `body` and its media type.
pub fn of_type(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
