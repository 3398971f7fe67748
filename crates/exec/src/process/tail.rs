//! The last bytes of a stream of any length.

/// Keeps what came last, and at most twice the limit on the way.
pub(super) struct Tail {
    bytes: Vec<u8>,
    limit: usize,
}

// === impl Tail ===

impl Tail {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moved once per limit, not once per push.
        if self.bytes.len() > 2 * self.limit {
            self.cut();
        }
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        self.cut();
        self.bytes
    }

    fn cut(&mut self) {
        let excess = self.bytes.len().saturating_sub(self.limit);
        self.bytes.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_any_row_of_pieces_is_kept() {
        let all: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for piece in [1, 3, 64, 1000] {
            let mut tail = Tail::new(100);
            for bytes in all.chunks(piece) {
                tail.push(bytes);
                assert!(tail.bytes.len() <= 200 + piece);
            }
            assert_eq!(tail.into_bytes(), all[900..]);
        }
    }
}
