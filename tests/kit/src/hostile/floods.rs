//! Frames that need no request, by the thousand.

use super::{Expected, Outcome, Row};
use crate::frames::{GOAWAY, PING, PRIORITY, PUSH_PROMISE, SETTINGS, Wire, encode};

/// Frames before each check that the server is still there.
const BATCH: usize = 500;
/// No frame has this type.
const UNKNOWN: u8 = 0xbb;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "20,000 PINGs",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(flood(wire, encode(PING, 0, 0, b"are you?"), 20_000)),
    },
    Row {
        name: "20,000 SETTINGS",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(flood(wire, encode(SETTINGS, 0, 0, &[]), 20_000)),
    },
    Row {
        name: "50,000 PRIORITYs of streams that nobody opened",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(flood(wire, encode(PRIORITY, 0, 99_999, &[0, 0, 0, 1, 255]), 50_000)),
    },
    Row {
        name: "20,000 frames that nobody knows",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(flood(wire, encode(UNKNOWN, 0xff, 0, b"what?"), 20_000)),
    },
    Row {
        name: "20,000 goodbyes",
        by_hub: false,
        expected: &[Expected::Dropped],
        attack: |wire| Box::pin(flood(wire, encode(GOAWAY, 0, 0, &[0; 8]), 20_000)),
    },
    Row {
        name: "a push by a client",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(flood(wire, encode(PUSH_PROMISE, 4, 1, &[0, 0, 0, 2, 0x82]), 1)),
    },
    Row {
        name: "a frame larger than is taken",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(flood(wire, encode(UNKNOWN, 0, 0, &vec![0; 2 << 20]), 1)),
    },
];

async fn flood(wire: &mut Wire, frame: Vec<u8>, frames: usize) -> Outcome {
    for first in (0..frames).step_by(BATCH) {
        let batch = frame.repeat(BATCH.min(frames - first));
        if !wire.send(&batch).await || !wire.answers_ping().await {
            break;
        }
    }
    Outcome::of_connection(wire).await
}
