//! HTTP/2 frames as they are received, and header names too long for the libraries below, on
//! connections of many users: the hub's to us, and ours to members.
//!
//! `http` takes names of less than 64 KiB, and h2 answers any other by the end of the *connection*.
//! Go's servers and clients know no such limit: whoever may ask the hub for anything of ours could
//! end its connection, with all its users' streams, and so could whatever a member relays answers
//! of. So heads of several frames are held until they are whole, and a field with such a name is
//! taken out of them; what HPACK's tables hold stays the same. A mark takes its place, for the one
//! request or answer to be refused.
//!
//! Held heads are cut anew ([`frames`]), into frames of the largest size that we announce, because
//! h2 also limits their number. A name that long takes a head of several frames, or one frame of
//! more than 32 KiB (5 bits a byte in the shortest code). Everything else passes as it comes.

mod block;
mod costly;
mod frames;
mod mark;
mod owed;
mod reach;
mod surplus;

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BytesMut};
use http::HeaderMap;
use net::seal::Seal;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::block::Mended;
use self::costly::Costly;
use self::owed::Owed;
use self::reach::{Block, Reach, block};
use self::surplus::Surplus;
use crate::headers::size::Unfit;
use crate::holding::{Account, Tally};
use crate::unread::Collector;

/// What was found in this connection's heads.
#[derive(Clone, Default)]
pub struct Marks(Arc<Found>);

#[derive(Default)]
struct Found {
    /// A head has a mark.
    marked: AtomicBool,
    /// See [`Marks::pinned`].
    pinned: AtomicUsize,
    /// See [`Marks::bytes`].
    bytes: AtomicUsize,
}

/// A stream of HTTP/2 frames as they are received, without such names.
pub struct Inbound<T> {
    stream: T,
    marks: Marks,
    reach: Reach,
    /// Bytes that pass before the next frame begins.
    passing: usize,
    /// Received, from the beginning of a frame, and not passed on yet.
    held: BytesMut,
    /// To be passed on before anything else is read.
    ready: BytesMut,
    /// SETTINGS and GOAWAY.
    costly: Costly,
    /// To members, and to clients that speak for nobody else: a hub reads.
    owed: Option<Owed>,
    surplus: Surplus,
    /// A head was longer than any is.
    is_too_long: bool,
    /// A member pushed. h2 would take in the head first, however long, and then refuse it.
    is_pushed: bool,
    /// In this turn, see [`OF_A_TURN`].
    frames: usize,
    /// Told of frames for streams.
    collector: Option<Arc<Collector>>,
    /// Of what is held and owed, and of the surplus.
    tally: Option<Tally>,
}

/// RFC 9113 §3.4.
const PREFACE: usize = 24;
/// What everybody takes of a frame's payload (RFC 9113 §6.5.2).
const FRAME: usize = 16 * 1024;
const FRAME_HEAD: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Frames of one turn of the connection: what they are about waits in h2 until the turn is over,
/// 250 bytes for a piece of a body, 700 for a reset that goes out. Those of one more read come with
/// them.
const OF_A_TURN: usize = 4096;
/// Bytes of header blocks that a member may have kept by pseudo-headers behind headers, which no
/// server of ours sends: Go's begins with `:status`.
const PINNED_BY_MEMBER: usize = 8 * 1024 * 1024;

/// The head of a frame (RFC 9113 §4.1).
struct Frame {
    length: usize,
    kind: u8,
    flags: u8,
    stream: u32,
}

// === impl Marks ===

impl Marks {
    /// Why this head, or these trailers, are not to be passed on, if so; removes the mark.
    pub fn take(&self, headers: &mut HeaderMap) -> Option<Unfit> {
        if !self.0.marked.load(Ordering::Relaxed) {
            return None;
        }
        headers.remove(mark::NAME).map(|mark| mark::cause(&mark))
    }

    /// Bytes of header blocks, over the connection's lifetime, that h2 may have kept for the sake
    /// of fields that it remembers.
    pub fn pinned(&self) -> usize {
        self.0.pinned.load(Ordering::Relaxed)
    }

    /// Bytes received, held ones included.
    pub fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    fn note(&self, mended: &Mended) {
        if mended.is_marked {
            self.0.marked.store(true, Ordering::Relaxed);
        }
        self.0.pinned.fetch_add(mended.pinned, Ordering::Relaxed);
    }
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

    /// h2 goes through all its streams for it, those that were reset among them: 50 µs for four
    /// thousand.
    fn is_costly(&self) -> bool {
        (self.kind == SETTINGS && self.flags & ACK == 0) || self.kind == GOAWAY
    }

    /// An answer to no request, or a dependency of a stream on itself, makes h2 reset a stream that
    /// nobody opened. So do the broken head of a client, and data for what is forgotten.
    fn may_be_reset(&self) -> bool {
        matches!(self.kind, HEADERS | PRIORITY)
    }

    /// Or trailers: h2 has it until somebody reads.
    fn is_of_a_body(&self) -> bool {
        matches!(self.kind, DATA | HEADERS)
    }

    fn size(&self) -> usize {
        FRAME_HEAD + self.length
    }
}

// === impl Inbound ===

impl<T> Inbound<T> {
    /// Received from a client, with its preface.
    pub fn of_client(stream: T, marks: Marks) -> Self {
        Self::new(stream, marks, reach::OF_CLIENTS, PREFACE, None)
    }

    /// The streams of its connection are attended by `collector`.
    pub fn attended_by(self, collector: Arc<Collector>) -> Self {
        Self { collector: Some(collector), ..self }
    }

    /// The client speaks for nobody else: resets that it does not read are counted, of which h2
    /// keeps no more than `most`.
    pub fn owed(self, most: usize) -> Self {
        Self { owed: Some(Owed::to_client(most)), ..self }
    }

    /// What is held counts for `account`.
    pub fn held_for(self, account: &Account) -> Self {
        Self { tally: Some(account.tally()), ..self }
    }

    /// Received from a member.
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
            surplus: Surplus::default(),
            is_too_long: false,
            is_pushed: false,
            frames: 0,
            collector: None,
            tally: None,
        }
    }

    /// How many of these bytes pass as they are: up to a frame that must be held, or whose head is
    /// not whole.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let here = self.passing.min(bytes.len() - at);
            at += here;
            self.passing -= here;
            match Frame::read(&bytes[at..]) {
                Some(frame) if !frame.begins_a_long_block() && !self.is_push(&frame) => {
                    self.count(&frame);
                    self.passing = frame.size();
                }
                _ => return at,
            }
        }
    }

    /// Passes on what is held as far as it is decided.
    fn decide(&mut self) {
        while let Some(frame) = Frame::read(&self.held) {
            if self.is_push(&frame) {
                self.is_pushed = true;
                return;
            }
            let block = if frame.begins_a_long_block() { block(&self.held, self.reach) } else { Block::Beyond };
            match block {
                Block::Part => return,
                Block::TooLong => {
                    self.is_too_long = true;
                    return;
                }
                Block::Whole(end) => {
                    self.count(&frame);
                    self.pass_block(end);
                }
                Block::Beyond => {
                    self.count(&frame);
                    self.passing = frame.size().saturating_sub(self.held.len());
                    let end = frame.size().min(self.held.len());
                    self.ready.unsplit(self.held.split_to(end));
                }
            }
        }
    }

    fn count(&mut self, frame: &Frame) {
        self.frames += 1;
        if let Some(collector) = self.collector.as_ref().filter(|_| frame.is_of_a_body()) {
            collector.frame(frame.length);
        }
        if frame.is_costly() {
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

    /// We allow no member to push (RFC 9113 §8.4).
    fn is_push(&self, frame: &Frame) -> bool {
        frame.kind == PUSH_PROMISE && self.is_of_member()
    }

    fn is_of_member(&self) -> bool {
        self.owed.as_ref().is_some_and(Owed::is_to_member)
    }

    /// Counts what is held.
    fn tally(&mut self) {
        if let Some(tally) = &mut self.tally {
            let owed = self.owed.as_ref().map_or(0, Owed::bytes);
            tally.set(self.held.capacity() + self.ready.capacity() + owed + self.surplus.bytes());
        }
    }

    fn tally_owed(&mut self) {
        if self.owed.as_ref().is_some_and(|owed| owed.bytes() > 0) {
            self.tally();
        }
    }

    fn check(&self) -> io::Result<()> {
        if self.costly.is_exceeded() {
            return Err(io::Error::other("too many SETTINGS or GOAWAY frames"));
        }
        if self.is_too_long {
            return Err(io::Error::other("a head beyond the limit"));
        }
        if self.is_pushed {
            return Err(io::Error::other("it pushes, although push is disabled"));
        }
        if self.is_of_member() && self.marks.pinned() > PINNED_BY_MEMBER {
            return Err(io::Error::other("too many pseudo-headers behind headers"));
        }
        if self.owed.as_ref().is_some_and(Owed::is_exceeded) {
            return Err(io::Error::other("it sends frames that are answered with resets, and does not read these"));
        }
        Ok(())
    }

    /// What is owed.
    fn changed(&mut self, change: impl FnOnce(&mut Owed)) {
        let Some(owed) = &mut self.owed else { return };
        let before = owed.bytes();
        change(owed);
        if before > 0 {
            self.tally();
        }
    }

    fn wrote(&mut self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        self.changed(|owed| owed.wrote(&written));
        written
    }

    fn pass_block(&mut self, end: usize) {
        let frames = self.held.split_to(end);
        match block::mended(&frames, self.reach.frame) {
            Some(mended) => {
                self.marks.note(&mended);
                self.surplus.add(mended.surplus);
                self.ready.extend_from_slice(&mended.frames);
            }
            None => self.ready.unsplit(frames),
        }
    }
}

impl<T: AsyncRead + Unpin> Inbound<T> {
    /// Reads what has come, unless the turn has had its part.
    fn poll_stream(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let read = if self.frames > OF_A_TURN {
            cx.waker().wake_by_ref();
            Poll::Pending
        } else {
            Pin::new(&mut self.stream).poll_read(cx, buf)
        };
        if read.is_pending() {
            self.frames = 0;
            self.surplus.end_turn();
        }
        read
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Inbound<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            this.check()?;
            if !this.ready.is_empty() {
                let here = this.ready.len().min(buf.remaining());
                buf.put_slice(&this.ready[..here]);
                this.ready.advance(here);
                if this.ready.is_empty() {
                    // Such heads are rare, and connections live for long.
                    this.ready = BytesMut::new();
                    this.tally();
                }
                return Poll::Ready(Ok(()));
            }
            if this.surplus.is_gone() {
                this.tally();
            }
            let before = buf.filled().len();
            ready!(this.poll_stream(cx, buf))?;
            let bytes = &buf.filled()[before..];
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.marks.0.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
            let passed = if this.held.is_empty() { this.pass(bytes) } else { 0 };
            if passed == bytes.len() {
                this.tally_owed();
                return Poll::Ready(Ok(()));
            }
            this.held.extend_from_slice(&bytes[passed..]);
            buf.set_filled(before + passed);
            this.decide();
            if this.held.is_empty() {
                this.held = BytesMut::new();
            }
            this.tally();
            if passed > 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Inbound<T> {
    net::forward!(stream: is_write_vectored, poll_shutdown);

    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.wrote(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.wrote(written)
    }

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
