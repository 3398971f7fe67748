//! Limits frames that are expensive for h2, and of which no peer needs many.

use std::time::Duration;

use tokio::time::Instant;

use crate::frames::{ACK, GOAWAY, SETTINGS};

/// What is said of a connection with more of them.
pub const TOO_MANY: &str = "too many SETTINGS or GOAWAY frames";
/// Most SETTINGS and GOAWAY frames of one connection, in a burst and per second. Peers that adapt
/// their windows to the path send a few dozen, and some send a few each time that they open or
/// close streams.
const BURST: u32 = 1000;
const A_SECOND: u32 = 10;

/// Counts such frames.
#[derive(Debug, Default)]
pub struct Costly {
    taken: u32,
    /// When the first of the counted ones arrived.
    since: Option<Instant>,
}

/// Whether h2 walks through all its streams for such a frame, including reset ones: 50 µs for four
/// thousand.
pub fn is_costly(kind: u8, flags: u8) -> bool {
    (kind == SETTINGS && flags & ACK == 0) || kind == GOAWAY
}

// === impl Costly ===

impl Costly {
    pub fn take(&mut self) {
        let since = *self.since.get_or_insert_with(Instant::now);
        let given_back = u32::try_from(since.elapsed().as_secs()).unwrap_or(u32::MAX);
        if given_back > 0 {
            self.taken = self.taken.saturating_sub(given_back.saturating_mul(A_SECOND));
            self.since = Some(since + Duration::from_secs(given_back.into()));
        }
        self.taken = self.taken.saturating_add(1);
    }

    pub fn is_exceeded(&self) -> bool {
        self.taken > BURST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_costs_nothing() {
        let frames = [(SETTINGS, 0), (SETTINGS, ACK), (GOAWAY, 0), (0, 0)];
        assert_eq!(frames.map(|(kind, flags)| is_costly(kind, flags)), [true, false, true, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_too_much_and_a_few_a_second_never() {
        let mut flood = Costly::default();
        (0..=BURST).for_each(|_| flood.take());
        assert!(flood.is_exceeded());
        let mut peer = Costly::default();
        for _ in 0..2000 {
            (0..A_SECOND).for_each(|_| peer.take());
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(!peer.is_exceeded());
    }
}
