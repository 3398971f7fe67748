//! Parses the head of an HTTP/1.1 `CONNECT` (RFC 9110 §9.3.6). The target names the destination;
//! the parser ignores `Host` (kube-apiserver sends `127.0.0.1`).

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use httparse::{EMPTY_HEADER, Header, Status};
use tunnel::{ClusterName, ClusterNameError, Destination, DestinationError};

/// Most headers in a head; a frontend sends two.
const MOST_HEADERS: usize = 64;
/// The header that names the cluster.
const TUNNEL_CLUSTER: &str = "tunnel-cluster";

/// The destination and the cluster of a `CONNECT`.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub destination: Destination,
    pub cluster: Option<ClusterName>,
}

/// Why a head is not a `CONNECT`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("not an HTTP/1.1 request: {0}")]
    Malformed(httparse::Error),
    #[error("the target of the CONNECT: {0}")]
    Target(#[from] DestinationError),
    #[error("header Tunnel-Cluster: {0}")]
    Cluster(#[from] ClusterNameError),
    #[error("header Tunnel-Cluster is there more than once")]
    ClusterTwice,
    #[error("a CONNECT has no body: leave out Content-Length and Transfer-Encoding")]
    Body,
    #[error("only CONNECT is served here")]
    Method,
    #[error("the request's head is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the request has more than {MOST_HEADERS} headers")]
    TooMany,
}

/// Parses a head at the start of `bytes`. Returns the request and the head's length, or `None` if
/// the head is not complete yet.
pub fn parse(bytes: &[u8]) -> Result<Option<(Request, usize)>, HeadError> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(HeadError::TooMany),
        Err(error) => return Err(HeadError::Malformed(error)),
    };
    if request.method != Some("CONNECT") {
        return Err(HeadError::Method);
    }
    let destination = Destination::parse(request.path.unwrap_or_default())?;
    let cluster = cluster(request.headers)?;
    has_no_body(request.headers)?;
    Ok(Some((Request { destination, cluster }, length)))
}

fn cluster(headers: &[Header<'_>]) -> Result<Option<ClusterName>, HeadError> {
    let mut named = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(TUNNEL_CLUSTER));
    let Some(first) = named.next() else { return Ok(None) };
    if named.next().is_some() {
        return Err(HeadError::ClusterTwice);
    }
    let name = std::str::from_utf8(first.value).map_err(|_| ClusterNameError::Characters)?;
    Ok(Some(ClusterName::parse(name.trim_matches([' ', '\t']))?))
}

/// The bytes behind the head belong to the tunnel. A client that sends them as a body would be
/// misunderstood, so its request is refused.
fn has_no_body(headers: &[Header<'_>]) -> Result<(), HeadError> {
    let is_body = |header: &&Header<'_>| {
        let is = |name: &http::HeaderName| header.name.eq_ignore_ascii_case(name.as_str());
        is(&TRANSFER_ENCODING) || is(&CONTENT_LENGTH) && header.value != b"0"
    };
    if headers.iter().any(|header| is_body(&header)) { Err(HeadError::Body) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
