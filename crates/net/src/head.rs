//! Reads HTTP/1 heads from a connection, for protocols that leave HTTP after them: the bytes after
//! a head are kept.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::words;

/// Why there is no head.
#[derive(Debug, thiserror::Error)]
pub enum HeadError {
    #[error("the head is longer than {0} bytes")]
    TooLong(usize),
    #[error("closed before the end of the head")]
    Closed,
    #[error("{}", words::io(.0))]
    Io(#[from] io::Error),
}

/// Searches for the end of a head that arrives in pieces, without searching the whole again for
/// each byte.
#[derive(Debug, Default)]
pub struct Search {
    /// Bytes that do not contain it.
    seen: usize,
}

/// Reads until `received` contains a complete head, and removes that from it. `received` is never
/// longer than `longest`.
pub async fn read<T: AsyncRead + Unpin>(
    io: &mut T,
    received: &mut BytesMut,
    longest: usize,
) -> Result<Bytes, HeadError> {
    let mut search = Search::default();
    loop {
        if let Some(head) = search.take(received) {
            return Ok(head.freeze());
        }
        let length = received.len();
        if length >= longest {
            return Err(HeadError::TooLong(longest));
        }
        if received.capacity() == length {
            received.reserve(length.max(1024));
        }
        if (&mut *io).take((longest - length) as u64).read_buf(received).await? == 0 {
            return Err(HeadError::Closed);
        }
    }
}

// === impl Search ===

impl Search {
    /// Removes the first head from `received`, including its empty line, if it is complete.
    pub fn take(&mut self, received: &mut BytesMut) -> Option<BytesMut> {
        let from = self.seen.saturating_sub(2);
        let Some(end) = end_of_head(&received[from..]) else {
            self.seen = received.len();
            return None;
        };
        self.seen = 0;
        Some(received.split_to(from + end))
    }
}

/// The length of a head. Bare line feeds count too (RFC 9112 §2.2); a caller that does not allow
/// them must check the head.
fn end_of_head(bytes: &[u8]) -> Option<usize> {
    let mut feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    feeds.find_map(|at| match &bytes[at + 1..] {
        [b'\n', ..] => Some(at + 2),
        [b'\r', b'\n', ..] => Some(at + 3),
        _ => None,
    })
}
