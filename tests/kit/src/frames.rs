//! HTTP/2 frame by frame (RFC 9113), for frames that no library sends on purpose: frames of streams
//! that are over, pieces of one byte by the hundred thousand, goodbyes that leave requests out.
//!
//! SETTINGS are acknowledged and otherwise ignored, windows are for the test to respect.

mod wire;

use std::io;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

pub use self::wire::{Places, Seen, Wire, in_frames};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;
/// Flag of SETTINGS and PING.
pub const ACK: u8 = 1;
pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;
pub const PADDED: u8 = 8;
/// `:status: 200` by its index in the static table (RFC 7541 appendix A).
pub const STATUS_200: &[u8] = &[0x88];

/// Settings (RFC 9113 section 6.5.2).
pub const HEADER_TABLE_SIZE: u8 = 1;
pub const MAX_CONCURRENT_STREAMS: u8 = 3;
pub const INITIAL_WINDOW_SIZE: u8 = 4;
pub const MAX_FRAME_SIZE: u8 = 5;
/// The first bytes of a client (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Payload of a PING.
const OPAQUE: &[u8; 8] = b"settled?";

/// A frame as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    /// 0 for the connection.
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// One side of a connection.
#[derive(Debug)]
pub struct Frames<T> {
    io: T,
    /// Received, from the beginning of a frame: a read that was given up loses nothing.
    received: BytesMut,
}

/// A frame as it is sent.
pub fn encode(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// One setting, as the payload of SETTINGS.
pub fn setting(name: u8, value: u32) -> Vec<u8> {
    [&[0, name][..], &value.to_be_bytes()].concat()
}

/// Header lines as literals without indexing, names and values as they are (RFC 7541 section
/// 6.2.2).
pub fn literals(lines: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in lines {
        block.push(0);
        for text in [name, value] {
            length(&mut block, text.len());
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// The block of a request to `https://localhost`, with these lines behind its own.
pub fn request(method: &str, target: &str, lines: &[(&str, &str)]) -> Vec<u8> {
    let own = [(":method", method), (":scheme", "https"), (":authority", "localhost"), (":path", target)];
    [literals(&own), literals(lines)].concat()
}

/// An integer with a prefix of seven bits (RFC 7541 section 5.1).
pub fn length(block: &mut Vec<u8>, length: usize) {
    /// From here on it takes more than one byte.
    const LONG: usize = 127;
    block.push(u8::try_from(length.min(LONG)).expect("at most 127"));
    let Some(mut rest) = length.checked_sub(LONG) else { return };
    while rest >= 0x80 {
        block.push(u8::try_from(rest & 0x7f).expect("seven bits") | 0x80);
        rest >>= 7;
    }
    block.push(u8::try_from(rest).expect("seven bits"));
}

// === impl Frames ===

impl<T: AsyncRead + AsyncWrite + Unpin> Frames<T> {
    /// The server's side, once the client has sent its preface, allowing it so many `streams` at a
    /// time.
    pub async fn server(mut io: T, streams: u32) -> io::Result<Self> {
        io.write_all(&encode(SETTINGS, 0, 0, &setting(MAX_CONCURRENT_STREAMS, streams))).await?;
        io.flush().await?;
        io.read_exact(&mut [0; PREFACE.len()]).await?;
        Ok(Self { io, received: BytesMut::new() })
    }

    /// The client's side.
    pub async fn client(mut io: T) -> io::Result<Self> {
        io.write_all(&[PREFACE, &encode(SETTINGS, 0, 0, &[])].concat()).await?;
        io.flush().await?;
        Ok(Self { io, received: BytesMut::new() })
    }

    /// The next frame.
    pub async fn read(&mut self) -> io::Result<Frame> {
        const HEAD: usize = 9;
        const MOST_READ: usize = 64 << 10;
        let (kind, flags, stream, payload) = loop {
            if let Some(&[a, b, c, kind, flags, ref stream @ ..]) = self.received.first_chunk::<HEAD>() {
                let (end, stream) = (HEAD + u32::from_be_bytes([0, a, b, c]) as usize, u32::from_be_bytes(*stream));
                if self.received.len() >= end {
                    break (kind, flags, stream, self.received.split_to(end)[HEAD..].to_vec());
                }
            }
            self.received.reserve(MOST_READ);
            if self.io.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        if (kind, flags & ACK) == (SETTINGS, 0) {
            self.send(SETTINGS, ACK, 0, &[]).await?;
        }
        Ok(Frame { kind, flags, stream, payload })
    }

    /// Sends one frame.
    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        self.send_all(&encode(kind, flags, stream, payload)).await
    }

    /// Sends frames made by [`encode`], in one write.
    pub async fn send_all(&mut self, frames: &[u8]) -> io::Result<()> {
        self.io.write_all(frames).await?;
        self.io.flush().await
    }

    /// Waits until the other side has read everything sent so far, which it shows by answering a
    /// PING after it. Frames received before that answer are lost.
    pub async fn settled(&mut self) -> io::Result<()> {
        self.send(PING, 0, 0, OPAQUE).await?;
        loop {
            let Frame { kind, flags, payload, .. } = self.read().await?;
            match kind {
                PING if flags & ACK == ACK => return Ok(()),
                GOAWAY => return Err(io::Error::other(format!("GOAWAY {payload:?}"))),
                _ => {}
            }
        }
    }

    /// Reads and ignores all frames for as long as the other side keeps the connection.
    pub async fn ignore(&mut self) -> io::Result<()> {
        loop {
            self.read().await?;
        }
    }

    /// Ends the connection in good order below HTTP/2.
    pub async fn shutdown(&mut self) -> io::Result<()> {
        self.io.shutdown().await
    }
}
