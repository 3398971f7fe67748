//! Frames (RFC 9113 §4.1, §6): those that a client of small GETs sends, and what it has to know of
//! those it receives.

use anyhow::{Result, bail, ensure};
use bytes::{Buf as _, BufMut as _, BytesMut};

const HEAD: usize = 9;
/// The longest that may come: nothing else was asked for.
const LONGEST: usize = 16 << 10;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// Settings.
const ENABLE_PUSH: u16 = 2;
const INITIAL_WINDOW: u16 = 4;
/// Bytes that a stream may send, and that the connection may send beyond its first 65,535.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: usize = (1 << 31) - (1 << 16);

/// A frame that came whole.
pub struct Frame {
    kind: u8,
    flags: u8,
    pub payload: BytesMut,
}

/// The meaning of a frame for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    Head,
    Data,
    Settings,
    Ping,
    /// Nothing that has to be answered.
    Other,
}

/// The beginning of a client's connection.
pub fn preface(out: &mut BytesMut) {
    out.put_slice(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    head(out, 12, SETTINGS, 0, 0);
    out.put_u16(ENABLE_PUSH);
    out.put_u32(0);
    out.put_u16(INITIAL_WINDOW);
    out.put_u32(STREAM_WINDOW);
    window(out, CONNECTION_WINDOW);
}

/// A request without a body.
pub fn request(out: &mut BytesMut, stream: u32, block: &[u8]) {
    head(out, block.len(), HEADERS, END_STREAM | END_HEADERS, stream);
    out.put_slice(block);
}

pub fn settings_acknowledged(out: &mut BytesMut) {
    head(out, 0, SETTINGS, ACK, 0);
}

pub fn pong(out: &mut BytesMut, payload: &[u8]) {
    head(out, payload.len(), PING, ACK, 0);
    out.put_slice(payload);
}

/// The connection may send so many bytes more.
pub fn window(out: &mut BytesMut, bytes: usize) {
    head(out, 4, WINDOW_UPDATE, 0, 0);
    out.put_uint(bytes as u64, 4);
}

fn head(out: &mut BytesMut, length: usize, kind: u8, flags: u8, stream: u32) {
    out.put_uint(length as u64, 3);
    out.put_u8(kind);
    out.put_u8(flags);
    out.put_u32(stream);
}

/// The next one of `input`, when all of it is there.
pub fn next(input: &mut BytesMut) -> Result<Option<Frame>> {
    if input.len() < HEAD {
        return Ok(None);
    }
    let length = usize::from(input[0]) << 16 | usize::from(input[1]) << 8 | usize::from(input[2]);
    ensure!(length <= LONGEST, "a frame of {length} bytes");
    if input.len() < HEAD + length {
        return Ok(None);
    }
    let (kind, flags) = (input[3], input[4]);
    input.advance(HEAD);
    Ok(Some(Frame { kind, flags, payload: input.split_to(length) }))
}

// === impl Frame ===

impl Frame {
    /// An error for what ends a stream or the connection before its time.
    pub fn arrived(&self) -> Result<Arrived> {
        Ok(match self.kind {
            DATA => Arrived::Data,
            HEADERS if self.flags & END_HEADERS == 0 => bail!("an answer's head in several frames"),
            HEADERS => Arrived::Head,
            SETTINGS if self.flags & ACK == 0 => Arrived::Settings,
            PING if self.flags & ACK == 0 => Arrived::Ping,
            RST_STREAM => bail!("a request was reset"),
            GOAWAY => bail!("the connection was ended: {:?}", self.payload),
            _ => Arrived::Other,
        })
    }

    /// Whether an answer ends with it.
    pub fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }
}
