//! A client's connection that keeps frames apart by stream: those of one are not lost while the
//! test waits for another.

use std::collections::HashMap;
use std::io;
use std::ops::RangeInclusive;

use super::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADER_TABLE_SIZE, HEADERS, INITIAL_WINDOW_SIZE,
    PING, RST_STREAM, SETTINGS, WINDOW_UPDATE, encode, request, setting,
};
use tokio::time::timeout;

use crate::client::BoxedIo;
use crate::wait::{WAIT, within};

/// More than a test reads of a stream, and of a connection.
const WINDOW: u32 = 64 << 20;
/// Bytes in one write, so that the peer's answers to them are read before there are many.
const BATCH: usize = 64 << 10;

/// Paths of a server, with their queries, that a test requests.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Answered at once.
    pub quick: String,
    /// Answered late or never.
    pub slow: String,
    /// Answered at once with more than 100 KiB.
    pub large: String,
    /// Takes a body.
    pub upload: String,
}

/// The frames of one stream.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Status of the first head that is not interim; 0 if it was not understood.
    pub status: Option<u16>,
    /// The body so far.
    pub body: Vec<u8>,
    /// It came to its proper end.
    pub ended: bool,
    /// It was reset, with this code.
    pub reset: Option<u32>,
}

/// One HTTP/2 connection that sends the same header lines with each request.
pub struct Wire {
    frames: Frames<BoxedIo>,
    /// Targets of requests.
    pub places: Places,
    lines: Vec<(String, String)>,
    next_stream: u32,
    streams: HashMap<u32, Seen>,
    /// A head goes on in the next frame: its stream.
    in_head: Option<(u32, Vec<u8>, u8)>,
    pongs: usize,
    /// The peer has ended it.
    over: bool,
    /// The code of its GOAWAY, if that was an error.
    goodbye: Option<u32>,
}

// === impl Wire ===

impl Wire {
    /// Begins HTTP/2 on `io`, each request with `lines`.
    pub async fn over(io: BoxedIo, places: Places, lines: &[(&str, &str)]) -> io::Result<Self> {
        let mut frames = Frames::client(io).await?;
        // Without a table of headers, a status can be read from its own head alone.
        let settings = [setting(HEADER_TABLE_SIZE, 0), setting(INITIAL_WINDOW_SIZE, WINDOW)].concat();
        frames.send(SETTINGS, 0, 0, &settings).await?;
        frames.send(WINDOW_UPDATE, 0, 0, &(WINDOW * 16).to_be_bytes()).await?;
        let lines = lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (streams, in_head) = (HashMap::new(), None);
        Ok(Self { frames, places, lines, next_stream: 1, streams, in_head, pongs: 0, over: false, goodbye: None })
    }

    /// Sends other lines with requests from now on.
    pub fn speak_for(&mut self, lines: &[(&str, &str)]) {
        self.lines = lines.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    }

    /// The stream of the next request.
    pub fn stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// The block of a request's head, with `more` lines.
    pub fn block(&self, method: &str, target: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let own = self.lines.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let lines: Vec<_> = own.chain(more.iter().copied()).collect();
        request(method, target, &lines)
    }

    /// Sends the head of a request, which ends there if `end`; returns its stream.
    pub async fn request(&mut self, method: &str, target: &str, more: &[(&str, &str)], end: bool) -> u32 {
        let block = self.block(method, target, more);
        let stream = self.stream();
        self.send(&in_frames(if end { END_STREAM } else { 0 }, stream, &block)).await;
        stream
    }

    /// Sends frames, unless the peer has ended the connection; returns whether it is still open.
    pub async fn send(&mut self, frames: &[u8]) -> bool {
        for part in frames.chunks(BATCH) {
            if self.over {
                return false;
            }
            if within(WAIT, "room for frames", self.frames.send_all(part)).await.is_err() {
                // Its earlier frames may still be there.
                self.until("the end of the connection", |_| false).await;
            }
        }
        !self.over
    }

    /// Whether the peer still answers: it has then read everything sent before.
    pub async fn answers_ping(&mut self) -> bool {
        let pongs = self.pongs;
        self.send(&encode(PING, 0, 0, b"settled?")).await && {
            self.until("the answer to a PING", |wire| wire.pongs > pongs).await;
            !self.over
        }
    }

    /// Reads until `condition` holds or the connection is over.
    pub async fn until(&mut self, what: &str, condition: impl Fn(&Self) -> bool) {
        let reading = async {
            while !self.over && !condition(self) {
                self.pump().await;
            }
        };
        within(WAIT, what, reading).await;
    }

    /// The frames of `stream`, once it or the connection is over, or nothing came for long.
    pub async fn outcome(&mut self, stream: u32) -> Seen {
        let reading = async {
            while !self.over && !self.seen(stream).is_some_and(Seen::is_over) {
                self.pump().await;
            }
        };
        timeout(WAIT / 2, reading).await.ok();
        self.seen(stream).cloned().unwrap_or_default()
    }

    /// The frames of `stream` so far.
    pub fn seen(&self, stream: u32) -> Option<&Seen> {
        self.streams.get(&stream)
    }

    /// Takes the body of `stream` so far.
    pub fn take(&mut self, stream: u32) -> Vec<u8> {
        self.streams.get_mut(&stream).map(|seen| std::mem::take(&mut seen.body)).unwrap_or_default()
    }

    /// The peer has ended the connection.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The code with which the peer said goodbye.
    pub fn goodbye(&self) -> Option<u32> {
        self.goodbye
    }

    async fn pump(&mut self) {
        let Ok(frame) = self.frames.read().await else {
            self.over = true;
            return;
        };
        let seen = self.streams.entry(frame.stream).or_default();
        match frame.kind {
            HEADERS => self.in_head = Some((frame.stream, frame.payload, frame.flags)),
            CONTINUATION => {
                if let Some((_, block, flags)) = &mut self.in_head {
                    block.extend_from_slice(&frame.payload);
                    *flags |= frame.flags & END_HEADERS;
                }
            }
            DATA => {
                seen.body.extend_from_slice(&frame.payload);
                seen.ended |= frame.flags & END_STREAM != 0;
            }
            RST_STREAM => seen.reset = Some(code(&frame.payload)),
            PING if frame.flags & ACK != 0 => self.pongs += 1,
            PING => drop(self.frames.send(PING, ACK, 0, &frame.payload).await),
            // With NO_ERROR it only leaves, and finishes what is open.
            GOAWAY if code(&frame.payload[4..]) != 0 => {
                self.over = true;
                self.goodbye = Some(code(&frame.payload[4..]));
            }
            _ => {}
        }
        if let Some((stream, block, flags)) = self.in_head.take_if(|head| head.2 & END_HEADERS != 0) {
            let seen = self.streams.entry(stream).or_default();
            let status = status(&block);
            if !matches!(status, Some(100..200)) {
                seen.status = seen.status.or(Some(status.unwrap_or(0)));
            }
            seen.ended |= flags & END_STREAM != 0;
        }
    }
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wire").field("streams", &self.streams.len()).field("over", &self.over).finish_non_exhaustive()
    }
}

// === impl Seen ===

impl Seen {
    /// Nothing more comes.
    pub fn is_over(&self) -> bool {
        self.ended || self.reset.is_some()
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A header block in frames that every peer takes.
pub fn in_frames(flags: u8, stream: u32, block: &[u8]) -> Vec<u8> {
    const FRAME: usize = 16 << 10;
    if block.len() <= FRAME {
        return encode(HEADERS, flags | END_HEADERS, stream, block);
    }
    let mut parts = block.chunks(FRAME);
    let mut frames = encode(HEADERS, flags, stream, parts.next().unwrap_or_default());
    for part in parts {
        frames.extend(encode(CONTINUATION, 0, stream, part));
    }
    frames.extend(encode(CONTINUATION, END_HEADERS, stream, &[]));
    frames
}

fn code(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(u32::MAX, |code| u32::from_be_bytes(*code))
}

/// The status of a response, which comes first (RFC 9113 section 8.3), if the table of headers has
/// no room for it (RFC 7541 section 6).
fn status(block: &[u8]) -> Option<u16> {
    const STATIC: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    /// Entries of the static table with this name, any of which may stand for it.
    const NAMES: RangeInclusive<u8> = 8..=14;
    // Indexes of a literal that is to be remembered, and of one that is not.
    let index = |name: u8| match name {
        0x40..=0x7f => name & 0x3f,
        0..=0x1f => name & 0x0f,
        _ => 0,
    };
    // Sizes of the table come before.
    let start = block.iter().position(|byte| byte & 0xe0 != 0x20)?;
    match block[start..] {
        [index @ 0x88..=0x8e, ..] => Some(STATIC[usize::from(index - 0x88)]),
        [name, length, ref value @ ..] if NAMES.contains(&index(name)) => {
            let value = value.get(..usize::from(length & 0x7f))?;
            let digits = if length & 0x80 == 0 { value.to_vec() } else { huffman_digits(value) };
            std::str::from_utf8(&digits).ok()?.parse().ok()
        }
        _ => None,
    }
}

/// `0` to `2` have five bits, the other digits six (RFC 7541 appendix B).
fn huffman_digits(value: &[u8]) -> Vec<u8> {
    let bits = value.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let (mut left, mut digits) = (value.len() * 8, Vec::new());
    while left >= 5 {
        let five = u8::try_from(bits >> (left - 5) & 0x1f).unwrap_or_default();
        if five < 3 {
            digits.push(b'0' + five);
            left -= 5;
        } else if left >= 6 {
            let six = u8::try_from(bits >> (left - 6) & 0x3f).unwrap_or_default();
            if !(0x19..=0x1f).contains(&six) {
                break;
            }
            digits.push(b'3' + six - 0x19);
            left -= 6;
        } else {
            break;
        }
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_each_form() {
        assert_eq!(status(&[0x20, 0x88]), Some(200));
        assert_eq!(status(&[0x48, 3, b'4', b'3', b'1']), Some(431));
        // 431: 011010 011001 00001, filled up with ones.
        assert_eq!(status(&[0x08, 0x83, 0b0110_1001, 0b1001_0000, 0b1111_1111]), Some(431));
        // As Go names it.
        assert_eq!(status(&[0x20, 0x0e, 3, b'4', b'3', b'1']), Some(431));
        assert_eq!(status(&[0xbe]), None);
    }
}
