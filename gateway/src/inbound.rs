//! Filters received HTTP/2 frames, and removes fields that the libraries below cannot take, on
//! connections of many users: the hub's to the gateway, and the gateway's to members.
//!
//! `http` takes names of less than 64 KiB, and h2 answers a longer one by ending the *connection*.
//! Go's servers and clients have no such limit: a user with access to any of our paths on the hub
//! could end the hub's connection, with all its users' streams, and so could the responses of a
//! server that a member relays. So heads of several frames are held until they are complete, and
//! fields with such a name are removed; the contents of HPACK's tables stay the same. A mark
//! replaces the field, so that this one request or response is refused.
//!
//! A field without a name is removed likewise: h2 ends the connection for one in the last frame of
//! a head, and ignores one in any other frame. If HPACK's table must remember the field, all later
//! heads would be read with another table than their sender's, so that ends the connection here,
//! too. A path too long for `http` is replaced, because the only answer to it would be a reset.
//!
//! Held heads are cut again ([`frames`]), into frames of the largest size that we announce, because
//! h2 also limits their number. A name of that length needs a head of several frames, or one frame
//! of more than 32 KiB (5 bits per byte in the shortest code). All other frames pass unchanged.

mod block;
mod bounds;
mod frames;
mod huffman;
mod marks;
mod owed;
mod reach;
mod reading;
mod turn;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::BytesMut;
use net::costly::{Costly, is_costly};
use net::seal::Seal;
use tokio::io::AsyncWrite;

pub use self::marks::Marks;
use self::owed::Owed;
pub use self::reach::LIST_OF_MEMBERS;
use self::reach::{Reach, block};
use self::turn::Turn;
use crate::holding::{Account, Tally};
use crate::unread::Collector;

/// A stream of HTTP/2 frames as they are received, without such fields.
pub struct Inbound<T> {
    stream: T,
    marks: Marks,
    reach: Reach,
    /// Bytes that pass before the next frame begins.
    passing: usize,
    /// Bytes received from the beginning of a frame, and not passed on yet.
    held: BytesMut,
    /// Bytes to pass on before anything else is read.
    ready: BytesMut,
    /// Counts SETTINGS and GOAWAY.
    costly: Costly,
    /// Set for members, and for clients other than front proxies: a hub reads.
    owed: Option<Owed>,
    turn: Turn,
    /// The error that ends the connection.
    broken: Option<&'static str>,
    /// Turns so far, if there is no collector to count them.
    turns: usize,
    /// Polls since the last read that read nothing because too much is held, see [`MOST_WAITS`].
    waits: usize,
    /// Notified of frames for streams.
    collector: Option<Arc<Collector>>,
    /// Counts what is held and owed, and what h2 has taken.
    tally: Option<Tally>,
    /// Bytes among these that h2 keeps for pieces that wait to be sent, or once waited.
    slots: usize,
    /// The server says goodbye before the connection ends, see [`Marks::end`].
    ends_with_goodbye: bool,
}

/// RFC 9113 §3.4.
const PREFACE: usize = 24;
/// Largest payload that every peer must accept (RFC 9113 §6.5.2).
const FRAME: usize = 16 * 1024;
const FRAME_HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// Most polls before each read that wait for room: while too much is held, nothing is read until
/// the tasks of those that give way have run. Bounded, because HTTP/2 may keep bytes that a peer
/// does not read.
const MOST_WAITS: usize = 64;
/// Most bytes of header blocks that a member may pin by pseudo-headers after headers. Honest
/// servers send none: Go's begins with `:status`.
const PINNED_BY_MEMBER: usize = 8 * 1024 * 1024;

/// The head of a frame (RFC 9113 §4.1).
struct Frame {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

// === impl Frame ===

impl Frame {
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[a, b, c, kind, flags, ref stream @ ..] = bytes.first_chunk::<FRAME_HEAD>()?;
        let stream = u32::from_be_bytes(*stream);
        Some(Self { length: u32::from_be_bytes([0, a, b, c]) as usize, kind, flags, stream })
    }

    fn begins_a_long_block(&self) -> bool {
        self.kind == HEADERS && (self.flags & END_HEADERS == 0 || self.length > block::MOST_NAME)
    }

    /// Whether h2 may answer with a reset: to a response without a request, to a stream that
    /// depends on itself, or to a client's broken head. DATA for forgotten streams counts apart.
    fn may_be_reset(&self) -> bool {
        matches!(self.kind, HEADERS | PRIORITY)
    }

    /// Also a head or trailers: h2 keeps each until it is read.
    fn is_of_a_body(&self) -> bool {
        matches!(self.kind, DATA | HEADERS)
    }

    /// Bytes of a header block.
    fn bytes_of_a_head(&self) -> usize {
        if matches!(self.kind, HEADERS | CONTINUATION) { self.length } else { 0 }
    }

    fn size(&self) -> usize {
        FRAME_HEAD + self.length
    }
}

// === impl Inbound ===

impl<T> Inbound<T> {
    /// Frames from a client, with its preface.
    pub fn of_client(stream: T, marks: Marks) -> Self {
        Self::new(stream, marks, reach::OF_CLIENTS, PREFACE, None)
    }

    /// Reports frames for streams to `collector`.
    pub fn attended_by(self, collector: Arc<Collector>) -> Self {
        Self { collector: Some(collector), ..self }
    }

    /// For a client that is no front proxy: counts resets that it does not read, of which h2 keeps
    /// at most `most`.
    pub fn owed(self, most: usize) -> Self {
        Self { owed: Some(Owed::to_client(most)), ..self }
    }

    /// Counts for `account` what is held.
    pub fn held_for(self, account: &Account) -> Self {
        Self { tally: Some(account.tally()), ..self }
    }

    /// Reports what ends the connection by [`Marks::end`] instead of an error: the server looks
    /// there after each poll, and can say goodbye, which h2 does not after an error of its stream.
    pub fn ending_with_goodbye(self) -> Self {
        Self { ends_with_goodbye: true, ..self }
    }

    /// Frames from a member.
    pub fn of_member(stream: T, marks: Marks) -> Self {
        Self::new(stream, marks, reach::OF_MEMBERS, 0, Some(Owed::to_member()))
    }

    fn new(stream: T, marks: Marks, reach: Reach, passing: usize, owed: Option<Owed>) -> Self {
        let (held, ready) = (BytesMut::new(), BytesMut::new());
        Self {
            stream,
            marks,
            reach,
            passing,
            held,
            ready,
            costly: Costly::default(),
            owed,
            turn: Turn::default(),
            broken: None,
            turns: 0,
            waits: 0,
            collector: None,
            tally: None,
            slots: 0,
            ends_with_goodbye: false,
        }
    }

    /// Returns how many of these bytes pass unchanged: up to a frame that must be held, or one with
    /// an incomplete frame header.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let here = self.passing.min(bytes.len() - at);
            at += here;
            self.passing -= here;
            match Frame::read(&bytes[at..]) {
                Some(frame) if !frame.begins_a_long_block() && frame.kind != PUSH_PROMISE => {
                    self.count(&frame);
                    self.turn.head(frame.bytes_of_a_head());
                    self.passing = frame.size();
                }
                _ => return at,
            }
        }
    }

    /// Passes on the held bytes that are decided, up to an error that ends the connection.
    fn decide(&mut self) {
        while self.broken.is_none()
            && let Some(frame) = Frame::read(&self.held)
        {
            // We allow no member to push, and no client may (RFC 9113 §8.4). h2 would read the
            // whole head, however long, before it refuses it.
            if frame.kind == PUSH_PROMISE {
                self.broken = Some("it pushes, although push is disabled");
                return;
            }
            if !frame.begins_a_long_block() {
                self.count(&frame);
                self.turn.head(frame.bytes_of_a_head());
                self.passing = frame.size().saturating_sub(self.held.len());
                let end = frame.size().min(self.held.len());
                self.ready.unsplit(self.held.split_to(end));
                continue;
            }
            match block(&self.held, self.reach) {
                Ok(Some(end)) => {
                    self.count(&frame);
                    self.pass_block(end);
                }
                Ok(None) => return,
                Err(why) => {
                    self.broken = Some(why);
                    return;
                }
            }
        }
    }

    fn count(&mut self, frame: &Frame) {
        self.turn.frame();
        if frame.is_of_a_body() {
            self.turn.kept();
            if let Some(collector) = &self.collector {
                collector.frame(frame.length);
            }
        }
        if is_costly(frame.kind, frame.flags) {
            self.costly.take();
        }
        if let Some(owed) = &mut self.owed {
            if frame.may_be_reset() {
                owed.add();
            } else if frame.kind == DATA {
                owed.add_data(frame.stream);
            }
        }
    }

    fn is_of_member(&self) -> bool {
        self.owed.as_ref().is_some_and(Owed::is_to_member)
    }

    fn pass_block(&mut self, end: usize) {
        let frames = self.held.split_to(end);
        match block::mended(&frames, self.reach) {
            Some(mended) => {
                self.marks.note(&mended);
                self.turn.head_of(mended.frames.len(), mended.fields, mended.surplus.min(self.reach.most_fields()));
                self.turn.coded(mended.coded);
                self.ready.extend_from_slice(&mended.frames);
            }
            // h2 would report it only after it has read everything before it.
            None => self.broken = Some("a head that is not a header block"),
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Inbound<T> {
    net::forward!(stream: is_write_vectored, poll_shutdown);
    net::forward!(stream then wrote: poll_write, poll_write_vectored);

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.changed(|owed| owed.flushed(&flushed));
        flushed
    }
}

impl<T: Seal> Seal for Inbound<T> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        let sealed = self.stream.seal(parts)?;
        self.changed(|owed| owed.took(sealed));
        Ok(sealed)
    }
}

#[cfg(test)]
mod tests;
