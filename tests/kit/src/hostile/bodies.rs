//! Request bodies and what is behind them.

use super::{Expected, Outcome, Row};
use crate::frames::{DATA, END_STREAM, PADDED, Wire, encode, in_frames, literals};

/// An answer to the half that came, or the end of the stream.
const ITS_OWN: &[Expected] = &[Expected::Reset, Expected::Told(400, ""), Expected::Told(431, "512 KiB")];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "an upload of one byte a frame",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"x").repeat(20_000), &[])),
    },
    Row {
        name: "an upload of one byte and 255 of padding a frame",
        by_hub: false,
        expected: &[Expected::Passed],
        // Within the window that streams begin with: padding counts (RFC 9113 section 6.1).
        attack: |wire| Box::pin(body(wire, |stream| padded(stream).repeat(250), &[])),
    },
    Row {
        name: "frames without a byte",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, 0, stream, &[]).repeat(5_000), &[])),
    },
    Row {
        name: "trailers of 600 KiB",
        by_hub: true,
        expected: ITS_OWN,
        attack: |wire| Box::pin(trailers(wire, literals(&[("x-long", &"X".repeat(600 << 10))]))),
    },
    Row {
        name: "trailers that grow in Huffman's code",
        by_hub: true,
        expected: ITS_OWN,
        attack: |wire| Box::pin(trailers(wire, literals(&[("x-grows", &"\\".repeat(450_000))]))),
    },
    Row {
        name: "trailers with a name of 70,000 bytes",
        by_hub: true,
        expected: &[Expected::Reset, Expected::Told(431, "32 KiB")],
        attack: |wire| Box::pin(trailers(wire, literals(&[(&"n".repeat(70_000), "")]))),
    },
    Row {
        name: "trailers with a field of HTTP/1.1",
        by_hub: false,
        expected: ITS_OWN,
        attack: |wire| Box::pin(trailers(wire, literals(&[("connection", "close")]))),
    },
    Row {
        name: "trailers with a pseudo-header",
        by_hub: false,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(trailers(wire, literals(&[(":path", "/")]))),
    },
    Row {
        name: "a body longer than it said",
        by_hub: false,
        expected: ITS_OWN,
        attack: |wire| {
            Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"0123456789"), &[("content-length", "5")]))
        },
    },
    Row {
        name: "a body shorter than it said",
        by_hub: false,
        expected: ITS_OWN,
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"01"), &[("content-length", "5")])),
    },
    Row {
        name: "two lengths",
        by_hub: false,
        expected: ITS_OWN,
        attack: |wire| {
            let lengths = &[("content-length", "2"), ("content-length", "5")];
            Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"01"), lengths))
        },
    },
    Row {
        name: "a client that waits to be told to continue",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"01"), &[("expect", "100-continue")])),
    },
    Row {
        name: "a client that expects what nobody knows",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, 0, stream, b"01"), &[("expect", "the-moon")])),
    },
    Row {
        name: "more of a body behind its end",
        by_hub: false,
        expected: &[Expected::Ended, Expected::Reset, Expected::Passed],
        attack: |wire| Box::pin(body(wire, |stream| encode(DATA, END_STREAM, stream, b"01"), &[])),
    },
];

/// An upload of `frames`, and its end.
async fn body(wire: &mut Wire, frames: impl Fn(u32) -> Vec<u8>, more: &[(&str, &str)]) -> Outcome {
    let target = wire.places.upload.clone();
    let stream = wire.request("POST", &target, more, false).await;
    wire.send(&frames(stream)).await;
    wire.send(&encode(DATA, END_STREAM, stream, &[])).await;
    Outcome::of(wire, stream).await
}

async fn trailers(wire: &mut Wire, block: Vec<u8>) -> Outcome {
    let target = wire.places.upload.clone();
    let stream = wire.request("POST", &target, &[], false).await;
    wire.send(&encode(DATA, 0, stream, b"body")).await;
    wire.send(&in_frames(END_STREAM, stream, &block)).await;
    Outcome::of(wire, stream).await
}

fn padded(stream: u32) -> Vec<u8> {
    let mut payload = vec![0; 257];
    payload[..2].copy_from_slice(&[255, b'x']);
    encode(DATA, PADDED, stream, &payload)
}
