//! Windows (RFC 9113 section 6.9): none, negative ones, too much of them, and clients that leave
//! them shut.

use super::{Expected, Outcome, Row};
use crate::frames::{INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE, SETTINGS, WINDOW_UPDATE, Wire, encode, setting};

/// Enough for every answer here.
const OPEN: u32 = 64 << 20;

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "a window of nothing more on the connection",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(alone(wire, encode(WINDOW_UPDATE, 0, 0, &[0; 4]))),
    },
    Row {
        name: "a window beyond the largest on the connection",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(alone(wire, encode(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]))),
    },
    Row {
        name: "windows of streams beyond the largest",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(alone(wire, encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, 1 << 31)))),
    },
    Row {
        name: "frames smaller than there may be",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(alone(wire, encode(SETTINGS, 0, 0, &setting(MAX_FRAME_SIZE, 100)))),
    },
    Row {
        name: "a window that becomes negative in the middle of an answer",
        by_hub: false,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(negative(wire)),
    },
    Row {
        name: "a window that is opened by one byte a time",
        by_hub: false,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(bytewise(wire)),
    },
    Row {
        name: "answers that nobody reads",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(unread(wire)),
    },
];

fn windows(bytes: u32) -> Vec<u8> {
    encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, bytes))
}

/// One frame of the connection, beside a request.
async fn alone(wire: &mut Wire, frame: Vec<u8>) -> Outcome {
    let target = wire.places.slow.clone();
    wire.request("GET", &target, &[], true).await;
    wire.send(&frame).await;
    Outcome::of_connection(wire).await
}

async fn negative(wire: &mut Wire) -> Outcome {
    const FIRST: u32 = 10_000;
    wire.send(&windows(FIRST)).await;
    let target = wire.places.large.clone();
    let stream = wire.request("GET", &target, &[], true).await;
    let first = FIRST as usize;
    wire.until("the first of it", |wire| wire.seen(stream).is_some_and(|seen| seen.body.len() >= first)).await;
    for bytes in [0, 1, FIRST / 2] {
        wire.send(&windows(bytes)).await;
        if !wire.answers_ping().await {
            return Outcome::of(wire, stream).await;
        }
    }
    wire.send(&windows(OPEN)).await;
    Outcome::of(wire, stream).await
}

async fn bytewise(wire: &mut Wire) -> Outcome {
    const BYTES: usize = 500;
    wire.send(&windows(0)).await;
    let target = wire.places.large.clone();
    let stream = wire.request("GET", &target, &[], true).await;
    for bytes in 1..=BYTES {
        wire.send(&encode(WINDOW_UPDATE, 0, stream, &[0, 0, 0, 1])).await;
        wire.until("a byte", |wire| wire.seen(stream).is_some_and(|seen| seen.body.len() == bytes)).await;
    }
    wire.send(&windows(OPEN)).await;
    Outcome::of(wire, stream).await
}

async fn unread(wire: &mut Wire) -> Outcome {
    const ANSWERS: usize = 50;
    wire.send(&windows(0)).await;
    let target = wire.places.large.clone();
    for _ in 0..ANSWERS {
        let stream = wire.request("GET", &target, &[], true).await;
        wire.until("a head", |wire| wire.seen(stream).is_some_and(|seen| seen.status.is_some())).await;
    }
    Outcome::of_connection(wire).await
}
