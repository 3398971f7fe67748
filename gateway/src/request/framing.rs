//! Checks of a request's framing beyond those of the parsers.

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Version};

use crate::error::Error;
use crate::headers;
use crate::headers::size::Unfit;
use crate::request_body::RequestBody;

/// Marks a request with `Content-Length` and `Transfer-Encoding`, because the parser hides the
/// former.
#[derive(Clone, Copy, Debug)]
pub struct TwoLengths;

/// Refuses requests without `Host` (RFC 9112 §3.2), `CONNECT`, targets that are neither a path nor
/// an absolute URI, and bodies whose end two servers may see in different places (§6.3, §11.2).
pub fn check(request: &Request<RequestBody>) -> Result<(), Error> {
    if request.method() == Method::CONNECT {
        return Err(Error::MethodNotAllowed);
    }
    if request.headers().len() > headers::MOST_LINES {
        return Err(Error::TooManyHeaders);
    }
    // Found before the head was parsed.
    if let Some(unfit) = request.extensions().get::<Unfit>() {
        return Err(Error::UnfitHead(*unfit));
    }
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        return Err(Error::BadRequest("an HTTP/1.1 request must have a Host header"));
    }
    if !request.uri().path().starts_with('/') {
        return Err(Error::BadRequest("the request target must be a path"));
    }
    if must_close_after(request) {
        if request.extensions().get::<TwoLengths>().is_some() {
            return Err(Error::BadRequest("a request must not have both Content-Length and Transfer-Encoding"));
        }
        if !is_chunked_once(request.headers()) {
            return Err(Error::BadRequest("the only Transfer-Encoding of a request may be \"chunked\", once"));
        }
    }
    Ok(())
}

/// The parser requires only that `chunked` comes last. The gateway cannot undo other codings, and
/// may neither announce nor hide them (RFC 9112 §6.1).
fn is_chunked_once(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let only = codings.next().filter(|_| codings.next().is_none());
    only.is_some_and(|coding| coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"))
}

/// Whether the connection must close after this request.
///
/// If a request has both, the parser uses `Transfer-Encoding` and hides `Content-Length`. RFC 9112
/// §6.3 allows that only if the connection closes afterwards, so that bytes which another server
/// may have read as the next request are never parsed as one. Such a request is refused
/// ([`check`]). The connection also closes after every chunked HTTP/1.x request: then no code needs
/// to follow the chunks to find the next head. Hubs and client-go send bodies over HTTP/2 or with a
/// length, so they never notice.
pub fn must_close_after(request: &Request<RequestBody>) -> bool {
    request.version() < Version::HTTP_2 && is_chunked(request.headers())
}

/// Whether there is a body without a length, however it is coded.
pub fn is_chunked(headers: &HeaderMap) -> bool {
    headers.contains_key(TRANSFER_ENCODING)
}

/// Whether the connection may upgrade. If it does not, it closes.
pub fn leaves_http(request: &Request<RequestBody>) -> bool {
    request.headers().get_all(CONNECTION).iter().any(|value| headers::has_token(value, "upgrade"))
}
