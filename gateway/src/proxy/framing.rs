//! What HTTP/1.1 messages must look like before we act on them, beyond what the parser already insists on.

use http::header::{HOST, TRANSFER_ENCODING};
use http::{Method, Request, Version};
use hyper::body::Incoming;

use crate::error::Error;
use crate::headers;

/// Refuses requests without `Host` (RFC 9112 §3.2), `CONNECT`, and targets that are neither a path nor an absolute URI.
pub fn check(request: &Request<Incoming>) -> Result<(), Error> {
    if request.method() == Method::CONNECT {
        return Err(Error::MethodNotAllowed);
    }
    if request.headers().len() > headers::MOST_LINES {
        return Err(Error::TooManyHeaders);
    }
    if request.version() == Version::HTTP_11 && !request.headers().contains_key(HOST) {
        return Err(Error::BadRequest("an HTTP/1.1 request must have a Host header"));
    }
    if !request.uri().path().starts_with('/') {
        return Err(Error::BadRequest("the request target must be a path"));
    }
    Ok(())
}

/// Whether the connection must close after this request.
///
/// The parser lets `Transfer-Encoding` win over a `Content-Length` beside it and hides the latter. RFC 9112 §6.3 allows that
/// only if the connection is closed afterwards, so that bytes which another server may have read as the next request are
/// never parsed as one. As the two cannot be told apart here, every chunked HTTP/1.x request is the last on its connection;
/// hubs and client-go, which send bodies over HTTP/2 or with a length, never notice.
pub fn must_close_after(request: &Request<Incoming>) -> bool {
    request.version() < Version::HTTP_2 && request.headers().contains_key(TRANSFER_ENCODING)
}
