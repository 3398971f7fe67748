//! Cuts a header block into frames, each of which, except the last, ends inside a field.
//!
//! h2 answers a field that HTTP/2 forbids (`connection`, `upgrade`, a late pseudo-header) with a
//! stream error. But if the frame ends exactly there, without `END_HEADERS`, h2 drops its partial
//! block, and the next CONTINUATION is a *connection* error. Go's servers pass on such fields in
//! interim responses and trailers that they relay, and cut where a frame is full.

use http::HeaderValue;

use super::{CONTINUATION, END_HEADERS, FRAME_HEAD, HEADERS};
use crate::headers::size::Unfit;

/// Name of the mark: the field that replaces a finding in a head. A request or response with it is
/// refused.
pub const MARK: &str = "cluster-gateway-unfit";
const TOO_LARGE: &[u8] = b"too large";
const NO_NAME: &[u8] = b"no name";
const LONG_PATH: &[u8] = b"long path";

/// The frames of one block while they are built.
pub struct Frames {
    bytes: Vec<u8>,
    stream: [u8; 4],
    /// Largest payload of one frame, in bytes.
    most: usize,
    /// Start of the last frame's payload.
    begins: usize,
    /// The last position in it that is inside a field; `begins` if there is none.
    inside: usize,
    is_marked: bool,
}

/// The mark, encoded (RFC 7541 §6.2.2). Its value is the reason.
pub fn mark(why: Unfit) -> Vec<u8> {
    let value = match why {
        Unfit::TooLarge => TOO_LARGE,
        Unfit::NoName => NO_NAME,
        Unfit::LongPath => LONG_PATH,
        _ => b"",
    };
    literal(0, MARK.as_bytes(), value)
}

/// The reason in a mark.
pub fn cause(mark: &HeaderValue) -> Unfit {
    match mark.as_bytes() {
        TOO_LARGE => Unfit::TooLarge,
        NO_NAME => Unfit::NoName,
        LONG_PATH => Unfit::LongPath,
        _ => Unfit::LongName,
    }
}

/// A literal of kind `first` with its own name, not in Huffman code. Names are shorter than 127
/// bytes.
pub fn literal(first: u8, name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut literal = vec![first, u8::try_from(name.len()).unwrap_or_default()];
    literal.extend_from_slice(name);
    let length = value.len();
    if length < 127 {
        literal.push(u8::try_from(length).unwrap_or_default());
    } else {
        let rest = length - 127;
        let low = u8::try_from(rest & 0x7f).unwrap_or_default() | 0x80;
        literal.extend_from_slice(&[127, low, u8::try_from(rest >> 7).unwrap_or_default()]);
    }
    literal.extend_from_slice(value);
    literal
}

// === impl Frames ===

impl Frames {
    /// The first frame has these `flags`. Each frame has at most `most` bytes of payload, for a
    /// block of about `length`.
    pub fn new(flags: u8, stream: [u8; 4], most: usize, length: usize) -> Self {
        let bytes = Vec::with_capacity(length + (length / most + 2) * FRAME_HEAD);
        let mut frames = Self { bytes, stream, most, begins: 0, inside: 0, is_marked: false };
        frames.begin(HEADERS, flags & !END_HEADERS);
        frames
    }

    /// Appends a field.
    pub fn put(&mut self, field: &[u8]) {
        if self.room() == 0 {
            self.cut_before();
        }
        let mut rest = field;
        while rest.len() > self.room() {
            let (here, next) = rest.split_at(self.room());
            self.bytes.extend_from_slice(here);
            self.next();
            rest = next;
        }
        let is_whole = rest.len() == field.len();
        self.bytes.extend_from_slice(rest);
        if !is_whole || rest.len() > 1 {
            self.inside = self.bytes.len() - 1;
        }
    }

    /// Returns the frames, and whether the block has a mark: if it `is_marked` already, or one had
    /// to be added.
    pub fn end(mut self, is_marked: bool) -> (Vec<u8>, bool) {
        self.close(END_HEADERS);
        (self.bytes, is_marked || self.is_marked)
    }

    fn room(&self) -> usize {
        self.most - (self.bytes.len() - self.begins)
    }

    /// Makes room for a field after a full frame that ends between two fields: moves the end of its
    /// last field into the next frame.
    fn cut_before(&mut self) {
        if self.inside > self.begins {
            let moved = self.bytes.split_off(self.inside);
            self.next();
            self.bytes.extend_from_slice(&moved);
            return;
        }
        // The frame consists of fields of one byte. That is always more than may be passed on
        // (`headers::size::MOST_BYTES`), so the head is refused.
        self.is_marked = true;
        let mark = mark(Unfit::TooLarge);
        let moved = self.bytes.split_off(self.bytes.len() - 1);
        self.bytes.extend_from_slice(&mark[..1]);
        self.next();
        self.bytes.extend_from_slice(&mark[1..]);
        self.inside = self.bytes.len() - 1;
        self.bytes.extend_from_slice(&moved);
    }

    fn next(&mut self) {
        self.close(0);
        self.begin(CONTINUATION, 0);
    }

    fn begin(&mut self, kind: u8, flags: u8) {
        self.bytes.extend_from_slice(&[0, 0, 0, kind, flags]);
        self.bytes.extend_from_slice(&self.stream);
        (self.begins, self.inside) = (self.bytes.len(), self.bytes.len());
    }

    /// Writes the length of the last frame into its header.
    fn close(&mut self, flags: u8) {
        let length = u32::try_from(self.bytes.len() - self.begins).unwrap_or_default().to_be_bytes();
        let head = self.begins - FRAME_HEAD;
        self.bytes[head..head + 3].copy_from_slice(&length[1..]);
        self.bytes[head + 4] |= flags;
    }
}
