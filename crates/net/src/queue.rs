//! Bytes taken from one side and not yet passed to the other.

use std::collections::VecDeque;

use bytes::{Buf as _, Bytes, BytesMut};

/// Pieces in order. Large ones are kept as they are. Small ones are copied together, so that a
/// stream of one-byte frames costs only its bytes, and no frame pins the read buffer of which it is
/// a slice.
#[derive(Debug, Default)]
pub struct Queue {
    pieces: VecDeque<Bytes>,
    tail: BytesMut,
    held: usize,
}

// === impl Queue ===

impl Queue {
    /// Pieces with fewer bytes are copied.
    pub const SMALL: usize = 1024;
    /// Size of the buffers for small pieces.
    const SHARED: usize = 4096;

    /// Appends a piece, which must not be empty.
    pub fn push(&mut self, piece: Bytes) {
        self.held += piece.len();
        if piece.len() >= Self::SMALL {
            self.seal();
            self.pieces.push_back(piece);
            return;
        }
        if self.tail.capacity() - self.tail.len() < piece.len() {
            self.renew_tail(piece.len());
        }
        self.tail.extend_from_slice(&piece);
    }

    /// Removes the next piece, or at most `most` bytes of it. Zero gives an empty piece or none.
    pub fn pop(&mut self, most: usize) -> Option<Bytes> {
        let piece = match self.pieces.front_mut() {
            Some(front) if front.len() > most => front.split_to(most),
            Some(_) => self.pieces.pop_front()?,
            None => self.pop_tail(most)?,
        };
        self.removed(piece.len());
        Some(piece)
    }

    fn removed(&mut self, bytes: usize) {
        self.held -= bytes;
        if self.held == 0 {
            // An idle stream keeps almost no memory.
            self.tail = BytesMut::new();
            self.pieces.shrink_to(4);
        }
    }

    /// Removes the tail, or at most `most` bytes of it. It does not pass through `pieces`, which
    /// would allocate a list.
    fn pop_tail(&mut self, most: usize) -> Option<Bytes> {
        if self.tail.is_empty() {
            return None;
        }
        if self.tail.len() > most {
            return Some(self.tail.split_to(most).freeze());
        }
        let tail = std::mem::take(&mut self.tail);
        // A few bytes must not keep a large unused rest.
        let pins = tail.capacity() / 4 > tail.len();
        Some(if pins { Bytes::copy_from_slice(&tail) } else { tail.freeze() })
    }

    /// The next piece, without removing it.
    pub fn front(&self) -> Option<&[u8]> {
        let next = self.pieces.front().map_or(&self.tail[..], |piece| piece);
        (!next.is_empty()).then_some(next)
    }

    /// Removes `bytes` of the next piece, at most all of it.
    pub fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.front().map_or(0, <[u8]>::len));
        match self.pieces.front_mut() {
            Some(front) if front.len() > bytes => front.advance(bytes),
            Some(_) => drop(self.pieces.pop_front()),
            None => self.tail.advance(bytes),
        }
        self.removed(bytes);
    }

    /// Bytes in the queue.
    pub fn held(&self) -> usize {
        self.held
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Makes space for a small piece of so many bytes. The first one gets only the space that it
    /// needs, because it is usually passed on before there is another. The second one is joined
    /// with the first, so that the two need no list.
    fn renew_tail(&mut self, bytes: usize) {
        let is_first = self.pieces.is_empty() && self.tail.is_empty();
        let joined = if self.tail.len() < Self::SMALL { std::mem::take(&mut self.tail) } else { BytesMut::new() };
        self.seal();
        self.tail = BytesMut::with_capacity(if is_first { bytes } else { Self::SHARED });
        self.tail.extend_from_slice(&joined);
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.pieces.push_back(self.tail.split().freeze());
        }
    }
}

#[cfg(test)]
mod tests;
