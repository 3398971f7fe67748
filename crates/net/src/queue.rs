//! Bytes taken from one side and not yet passed to the other.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Pieces in order. Large ones are kept as they came; small ones are copied together, so that a
/// stream of one-byte frames costs what it holds and no frame pins the read buffer it was cut from.
#[derive(Debug, Default)]
pub struct Queue {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
    held: usize,
}

// === impl Queue ===

impl Queue {
    /// A piece of fewer bytes is copied.
    pub const SMALL: usize = 1024;
    /// Size of the buffers that small pieces are copied to.
    const SHARED: usize = 4096;

    /// Appends a piece, which is not empty.
    pub fn push(&mut self, piece: Bytes) {
        self.held += piece.len();
        if piece.len() >= Self::SMALL {
            self.seal();
            self.pieces.push_back(piece);
            return;
        }
        // The first small piece gets what it needs: most often it is passed on before there is
        // another.
        if self.tail.capacity() - self.tail.len() < piece.len() {
            self.seal();
            self.tail = BytesMut::with_capacity(if self.pieces.is_empty() { piece.len() } else { Self::SHARED });
        }
        self.tail.extend_from_slice(&piece);
    }

    /// The next piece, at most `most` bytes of it.
    pub fn pop(&mut self, most: usize) -> Option<Bytes> {
        if self.pieces.is_empty() {
            self.seal();
        }
        let front = self.pieces.front_mut()?;
        let piece = if front.len() <= most { self.pieces.pop_front()? } else { front.split_to(most) };
        self.held -= piece.len();
        if self.held == 0 {
            // An idle stream keeps next to nothing.
            self.tail = BytesMut::new();
            self.pieces.shrink_to(4);
        }
        Some(piece)
    }

    /// The next piece, to look at.
    pub fn front(&mut self) -> Option<&[u8]> {
        if self.pieces.is_empty() {
            self.seal();
        }
        self.pieces.front().map(|piece| &piece[..])
    }

    /// Takes `bytes` of the next piece away.
    pub fn advance(&mut self, bytes: usize) {
        self.pop(bytes);
    }

    /// Bytes in it.
    pub fn held(&self) -> usize {
        self.held
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests;
