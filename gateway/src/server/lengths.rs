//! Detects chunked HTTP/1.1 requests that also have a `Content-Length`.
//!
//! If a request has both, the parser uses `Transfer-Encoding` and hides `Content-Length`. So this
//! module reads the same bytes: heads with the same parser and the same limits, and bodies by the
//! length that the parser uses. A chunked request is the last on its connection
//! ([`must_close_after`](crate::request::framing::must_close_after)), so that no chunks need to be
//! parsed, and the finding belongs to that request. Bytes that cannot be followed count as
//! ambiguous: the parser refuses them too, and makes no request of them.

mod head;

use std::io;
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use bytes::BytesMut;

use self::head::{Malformed, Next, may_end, read};
use super::limits::Limits;
use crate::holding::{self, Account, Tally};
use crate::request_body::ReadAhead;

/// The finding for the connection's chunked request, and what the parser reads ahead of bodies.
#[derive(Clone, Default)]
pub struct Lengths(Arc<AtomicU8>, ReadAhead);

/// Reads the connection's bytes. Usually parses each head once, and only skips
/// bodies.
pub struct Reader {
    noted: Lengths,
    section: Section,
    /// Counts the incomplete head, or the largest one so far. None once the connection leaves HTTP:
    /// an upgrade has its own account.
    tally: Option<Tally>,
    /// Memory that the parser's buffer may have kept.
    kept: usize,
}

enum Section {
    /// A head, with the bytes received so far.
    Head(BytesMut),
    /// A body, with the number of bytes to come.
    Body(u64),
    /// The rest needs no parsing.
    Over,
}

const AMBIGUOUS: u8 = 1;
const ENOUGH: u8 = 2;

// === impl Lengths ===

impl Lengths {
    /// `account` counts an incomplete head.
    pub fn reader(&self, account: Option<&Account>) -> Reader {
        let tally = account.map(Account::tally);
        Reader { noted: self.clone(), section: Section::Head(BytesMut::new()), tally, kept: 0 }
    }

    pub fn ahead(&self) -> &ReadAhead {
        &self.1
    }

    /// Whether the chunked request of this connection has a `Content-Length` as well.
    pub fn are_ambiguous(&self) -> bool {
        self.0.load(Ordering::Relaxed) & AMBIGUOUS != 0
    }

    /// No other request of this connection will be served: the rest need not be HTTP.
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
    fn on_poll(&mut self, room: usize) {
        self.noted.1.note(room);
    }

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
    /// Most bytes that the parser may read of a head before it refuses it: its buffer's limit, and
    /// one more read.
    const MOST: usize = 4 * Limits::HEADER_BYTES as usize;
    /// Most bytes of empty lines before a request. One line must be tolerated (RFC 9112 §2.2). The
    /// parser restarts at the first with each read, so a mebibyte of them, byte by byte, would cost
    /// a minute of a core.
    const MOST_BLANK: usize = 64;

    /// Counts the bytes of a head twice: the parser has them too, and keeps the memory while the
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

    /// Reads a head from its beginning. Returns its length if it is complete and the connection
    /// continues.
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

    /// Reads a head that arrives in pieces, but only when its end may be in this piece, so that
    /// single bytes do not cost a parse each.
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
            // Recurses once: the rest begins a body or a head.
            self.follow(&begun[length..]);
        }
    }
}

#[cfg(test)]
mod tests;
