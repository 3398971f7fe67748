//! Limits the size of heads and trailers that are sent on a connection of many users.
//!
//! Go's HTTP/2 servers, including API servers, answer a head that they cannot accept by ending its
//! *connection*, with all callers' streams, in three cases
//! (`golang.org/x/net/http2.(*Framer).readMetaFrame`, `MaxHeaderBytes` of 1 MiB, frames of 256 KiB
//! in `k8s.io/apiserver/pkg/server/secure_serving.go`):
//!
//! - one frame is longer than twice what is left of the limit, or any frame follows when nothing is
//!   left;
//! - one string is longer than the limit, plain or encoded;
//! - a frame follows an invalid field.
//!
//! The encoding may be longer: h2 always writes Huffman code (RFC 7541 appendix B), with up to 28
//! bits for a byte that headers may contain. So [`MOST_BYTES`] limits both sizes. Then no frame is
//! longer than what is left of a mebibyte, let alone twice that, and no string reaches it. Clients
//! written in Go, including the hub's aggregator, judge responses in the same way, with a limit of
//! 10 MiB.

use http::{HeaderMap, Request, StatusCode};

use super::MOST_LINES;

/// Most bytes of a head or of trailers: names, values, method, path and query, and [`FIELD`] for
/// each; and most bytes of their HPACK encoding.
pub const MOST_BYTES: usize = 512 * 1024;

/// Bytes that a field counts in addition to its name and value (RFC 9113 §6.5.2). HPACK adds less:
/// at most nine bytes for kind, index and lengths.
const FIELD: usize = 32;
/// The longest code of a byte that headers may contain, in half bytes.
const WORST: usize = 7;
/// This many bytes are within the limit in any encoding.
const SURE: usize = MOST_BYTES * 2 / WORST;
/// This many bytes fit, in any encoding, into one frame of the size that every peer accepts, 16
/// KiB.
const ONE_FRAME: usize = 4096;

/// Why a head or trailers are not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    #[error("more than {} KiB of headers, plain or HPACK-encoded", MOST_BYTES / 1024)]
    TooLarge,
    /// `http` accepts `"` in names from HTTP/2, although they are no token then (RFC 9110 §5.6.2).
    #[error("a header name with a quotation mark, which is invalid")]
    Name,
    /// For trailers. Heads are counted where they are read ([`MOST_LINES`]).
    #[error("more than {MOST_LINES} lines")]
    TooMany,
    /// Removed before the head was parsed.
    #[error("a header name of more than 32 KiB")]
    LongName,
    /// Removed, too.
    #[error("a header without a name, which is invalid")]
    NoName,
    /// Replaced before the head was parsed, because `http` accepts no longer one.
    #[error("a path and query of more than 64 KiB")]
    LongPath,
}

// === impl Unfit ===

impl Unfit {
    /// The remedy for the sender.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::TooLarge | Self::TooMany | Self::LongName => "send fewer or shorter headers",
            Self::Name => "rename the header",
            Self::NoName => "leave the header out",
            Self::LongPath => "send a shorter one",
        }
    }

    /// The status of a request with this fault.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge | Self::TooMany | Self::LongName => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Name | Self::NoName => StatusCode::BAD_REQUEST,
            Self::LongPath => StatusCode::URI_TOO_LONG,
        }
    }
}

/// Checks the head of a request with all added headers. Returns its bytes, plain and with [`FIELD`]
/// for each field.
pub fn of_request<B>(request: &Request<B>) -> Result<usize, Unfit> {
    let path = request.uri().path_and_query().map_or("", |path| path.as_str());
    check([request.method().as_str(), path], request.headers())
}

/// Checks the head of a response.
pub fn of_fields(headers: &HeaderMap) -> Result<(), Unfit> {
    check(["", ""], headers).map(drop)
}

/// Checks trailers, whose lines were not counted before.
pub fn of_trailers(trailers: &HeaderMap) -> Result<(), Unfit> {
    if trailers.len() > MOST_LINES { Err(Unfit::TooMany) } else { of_fields(trailers) }
}

fn check(first: [&str; 2], headers: &HeaderMap) -> Result<usize, Unfit> {
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD);
    let raw = first[0].len() + first[1].len() + 2 * FIELD + fields.sum::<usize>();
    if raw <= ONE_FRAME {
        // An invalid field in it costs only its own stream.
        return Ok(raw);
    }
    large(raw, first, headers).map(|()| raw)
}

#[cold]
fn large(raw: usize, first: [&str; 2], headers: &HeaderMap) -> Result<(), Unfit> {
    if raw > MOST_BYTES {
        return Err(Unfit::TooLarge);
    }
    if headers.keys().any(|name| name.as_str().contains('"')) {
        return Err(Unfit::Name);
    }
    if raw > SURE && encoded(first, headers) > MOST_BYTES {
        return Err(Unfit::TooLarge);
    }
    Ok(())
}

/// The largest HPACK encoding: every field is written in full, as if no table had it yet.
fn encoded(first: [&str; 2], headers: &HeaderMap) -> usize {
    /// Overhead of a field: kind and index, and two lengths below 2 MiB (RFC 7541 §5.1).
    const OVERHEAD: usize = 1 + 4 + 4;
    let field = |name: &str, value: &[u8]| OVERHEAD + huffman(name.as_bytes()) + huffman(value);
    let fields = headers.iter().map(|(name, value)| field(name.as_str(), value.as_bytes()));
    field(":method", first[0].as_bytes()) + field(":path", first[1].as_bytes()) + fields.sum::<usize>()
}

/// Bytes of `text` in Huffman code.
fn huffman(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(CODE_BITS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Lengths of the codes of RFC 7541 appendix B, in bits.
#[rustfmt::skip]
pub const CODE_BITS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

#[cfg(test)]
mod tests;
