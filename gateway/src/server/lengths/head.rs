//! Reads the head of a request for the length of its body.

use std::mem::MaybeUninit;

use httparse::{Error, Header, Request, Status};

use super::Lengths;
use crate::server::limits::Limits;

/// What follows a head.
pub(super) enum Next {
    /// The head ends after the first number of bytes; the second is the length of its body.
    After(usize, u64),
    /// The body is chunked, so it is the last on the connection.
    Chunked,
    /// The head is not complete yet.
    More,
}

/// The parser makes no request of these bytes.
pub(super) struct Malformed;

/// Whether the empty line that ends a head may be here. Lines end with CRLF or, as in the parser,
/// LF. Strangers choose how long a line is, so a piece of one is not searched byte by byte:
/// `contains` compares words.
pub(super) fn may_end(bytes: &[u8]) -> bool {
    let is_empty = |line: &[u8]| line.starts_with(b"\n") || line.starts_with(b"\r\n");
    bytes.contains(&b'\n') && (0..bytes.len()).any(|at| bytes[at] == b'\n' && is_empty(&bytes[at + 1..]))
}

pub(super) fn read(bytes: &[u8], noted: &Lengths) -> Result<Next, Malformed> {
    /// More than nearly all requests have.
    const USUAL_LINES: usize = 64;
    match read_into(bytes, &mut [const { MaybeUninit::uninit() }; USUAL_LINES], noted) {
        Err(Error::TooManyHeaders) => {
            let mut lines = vec![MaybeUninit::uninit(); Limits::HEADER_LINES];
            read_into(bytes, &mut lines, noted)?
        }
        read => read?,
    }
}

fn read_into<'b>(
    bytes: &'b [u8],
    lines: &mut [MaybeUninit<Header<'b>>],
    noted: &Lengths,
) -> Result<Result<Next, Malformed>, Error> {
    let mut request = Request::new(&mut []);
    let Status::Complete(length) = request.parse_with_uninit_headers(bytes, lines)? else {
        return Ok(Ok(Next::More));
    };
    let mut chunked = false;
    let mut body = None;
    for line in request.headers.iter() {
        if line.name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = true;
        } else if line.name.eq_ignore_ascii_case("content-length") {
            body.get_or_insert(line.value);
        }
    }
    Ok(match (chunked, body) {
        (true, body) => {
            if body.is_some() {
                noted.note_ambiguous();
            }
            Ok(Next::Chunked)
        }
        (false, None) => Ok(Next::After(length, 0)),
        // The parser checks that any others are equal, or refuses them.
        (false, Some(digits)) => digits_of(digits).map(|body| Next::After(length, body)).ok_or(Malformed),
    })
}

/// Reads a length like the parser: only digits.
fn digits_of(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

impl From<Error> for Malformed {
    fn from(_: Error) -> Self {
        Self
    }
}
