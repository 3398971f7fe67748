//! Which chunked HTTP/1.1 request says its length twice.
//!
//! The parser lets `Transfer-Encoding` win over a `Content-Length` beside it, and hides the latter.
//! So this module reads along: heads by the same parser, with the same limits, and bodies by the
//! length it goes by. A chunked request is the last of its connection
//! ([`must_close_after`](crate::request::framing::must_close_after)), so that no chunk has to be
//! read, and what was noted is of the one request that asks. What cannot be followed counts as
//! ambiguous: the parser refuses it too, and no request comes of it.

use std::io;
use std::mem::{MaybeUninit, take};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::BytesMut;
use httparse::{Error, Header, Request, Status};

use super::limits::Limits;
use crate::holding::{self, Account, Tally};

/// What was noted about the connection's chunked request.
#[derive(Clone, Default)]
pub struct Lengths(Arc<AtomicU8>);

/// Reads along. Costs one look at each head, and of bodies nothing.
pub struct Reader {
    noted: Lengths,
    section: Section,
    /// Of a head that is not whole, or for the largest there was. Gone when the connection leaves
    /// HTTP: the upgrade has an account of its own.
    tally: Option<Tally>,
    /// What the parser's buffer may have kept of its room.
    kept: usize,
}

enum Section {
    /// A head, of which this was received.
    Head(BytesMut),
    /// A body, of which so many bytes are to come.
    Body(u64),
    /// Nothing that follows is of interest.
    Over,
}

/// What a head says of what follows it.
enum Next {
    /// The head, of so many bytes, ends here; so many bytes of a body follow.
    After(usize, u64),
    /// The body is chunked: the last on the connection.
    Chunked,
    /// The head is not whole yet.
    More,
}

/// No request comes of it.
struct Malformed;

const AMBIGUOUS: u8 = 1;
const ENOUGH: u8 = 2;

// === impl Lengths ===

impl Lengths {
    /// `account` has what a head that is not whole holds.
    pub fn reader(&self, account: Option<&Account>) -> Reader {
        let tally = account.map(Account::tally);
        Reader { noted: self.clone(), section: Section::Head(BytesMut::new()), tally, kept: 0 }
    }

    /// Whether the chunked request of this connection has a `Content-Length` as well.
    pub fn are_ambiguous(&self) -> bool {
        self.0.load(Ordering::Relaxed) & AMBIGUOUS != 0
    }

    /// No other request of this connection will be served: what follows need not be HTTP.
    pub fn enough(&self) {
        self.0.fetch_or(ENOUGH, Ordering::Relaxed);
    }

    fn is_enough(&self) -> bool {
        self.0.load(Ordering::Relaxed) & ENOUGH != 0
    }

    fn note_ambiguous(&self) {
        self.0.fetch_or(AMBIGUOUS, Ordering::Relaxed);
    }
}

// === impl Reader ===

impl net::observed::ActivityObserver for Reader {
    fn on_read(&mut self, bytes: &[u8]) {
        self.follow(bytes);
        self.count();
    }

    fn check(&self) -> io::Result<()> {
        if self.is_blank() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "empty lines instead of a request"));
        }
        Ok(())
    }
}

impl Reader {
    /// The parser may have read so much of a head, and then refuses it: its buffer's limit, and one
    /// read beyond.
    const MOST: usize = 4 * Limits::HEADER_BYTES as usize;
    /// Bytes of empty lines before a request. One line is to be borne (RFC 9112 §2.2). The parser
    /// begins with the first at each read, so that a mebibyte of them, byte by byte, would cost a
    /// minute of a core.
    const MOST_BLANK: usize = 64;

    /// What is held of a head, twice: the parser has it too, and keeps the room for as long as the
    /// connection is HTTP's.
    fn count(&mut self) {
        let Some(tally) = &mut self.tally else { return };
        match &self.section {
            Section::Head(begun) => tally.set((2 * begun.capacity()).max(self.kept)),
            Section::Body(_) => tally.set(self.kept),
            Section::Over => self.tally = None,
        }
    }

    fn is_blank(&self) -> bool {
        let Section::Head(begun) = &self.section else { return false };
        let blank = |begun: &[u8]| begun.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        begun.get(..=Self::MOST_BLANK).is_some_and(blank)
    }

    fn follow(&mut self, mut bytes: &[u8]) {
        if self.noted.is_enough() {
            self.section = Section::Over;
        }
        while !bytes.is_empty() {
            bytes = match &mut self.section {
                Section::Over => return,
                Section::Body(left) => {
                    let here = bytes.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= here as u64;
                    if *left == 0 {
                        self.section = Section::Head(BytesMut::new());
                    }
                    &bytes[here..]
                }
                Section::Head(begun) if begun.is_empty() => match self.head(bytes) {
                    Some(length) => &bytes[length..],
                    None => return,
                },
                Section::Head(_) => return self.go_on(bytes),
            }
        }
    }

    /// Reads a head from its beginning, and returns its length if it is whole and its connection
    /// goes on.
    fn head(&mut self, bytes: &[u8]) -> Option<usize> {
        match read(bytes, &self.noted) {
            Ok(Next::After(length, body)) => {
                self.section = if body == 0 { Section::Head(BytesMut::new()) } else { Section::Body(body) };
                self.kept = self.kept.max(holding::room(length));
                return Some(length);
            }
            Ok(Next::More) => self.section = Section::Head(bytes.into()),
            Ok(Next::Chunked) => self.section = Section::Over,
            Err(Malformed) => {
                self.noted.note_ambiguous();
                self.section = Section::Over;
            }
        }
        None
    }

    /// Reads a head that comes in pieces: only when its end may be in this one, so that single
    /// bytes do not cost a head each.
    fn go_on(&mut self, bytes: &[u8]) {
        let Section::Head(begun) = &mut self.section else { return };
        let from = begun.len().saturating_sub(2);
        begun.extend_from_slice(bytes);
        if !may_end(&begun[from..]) && begun.len() <= Self::MOST {
            return;
        }
        let begun = take(begun);
        if begun.len() > Self::MOST {
            self.noted.note_ambiguous();
            self.section = Section::Over;
        } else if let Some(length) = self.head(&begun) {
            // Once: what is left begins a body or a head.
            self.follow(&begun[length..]);
        }
    }
}

/// Whether the empty line may be here that ends a head. Lines end with CRLF or, as the parser has
/// it, LF.
fn may_end(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|three| three == b"\n\r\n")
}

fn read(bytes: &[u8], noted: &Lengths) -> Result<Next, Malformed> {
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
        // The parser has it that others are equal, or refuses them.
        (false, Some(digits)) => digits_of(digits).map(|body| Next::After(length, body)).ok_or(Malformed),
    })
}

/// As the parser reads a length: digits, and nothing else.
fn digits_of(text: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

impl From<Error> for Malformed {
    fn from(_: Error) -> Self {
        Self
    }
}

#[cfg(test)]
mod tests;
