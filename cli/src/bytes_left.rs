//! Bounds the memory for what clusters send, for all of them together.

use std::sync::atomic::{AtomicUsize, Ordering};

use fleet::Failure;

/// Bytes that may still be kept.
pub struct BytesLeft {
    left: AtomicUsize,
    whole: usize,
}

// === impl BytesLeft ===

impl BytesLeft {
    pub fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes), whole: bytes }
    }

    pub fn take(&self, bytes: usize) -> Result<(), Failure> {
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        left.map(drop).map_err(|_| {
            let whole = self.whole;
            Failure::own(format!(
                "all clusters together have more than {whole} bytes of this: ask for less, or for fewer"
            ))
        })
    }

    /// Returns bytes that were shown and are no longer kept.
    pub fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_answers_together_have_an_end() {
        let room = BytesLeft::new(10);
        assert!(room.take(4).is_ok() && room.take(6).is_ok() && room.take(0).is_ok());
        assert!(room.take(1).unwrap_err().message.contains("ask for less"));
        room.give_back(4);
        assert!(room.take(5).is_err() && room.take(4).is_ok(), "what is too much takes no room");
    }
}
