//! Header blocks: their size as it is and as it is written (RFC 7541), their frames, their fields.

use super::{Expected, Outcome, Row};
use crate::frames::{CONTINUATION, END_HEADERS, END_STREAM, HEADERS, Wire, encode, in_frames, length, literals};

/// Nothing of this is taken.
const REFUSED: &[Expected] = &[Expected::Reset, Expected::Told(400, "")];
const TOO_LARGE: &[Expected] = &[Expected::Told(431, "512 KiB")];

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "500 KiB of headers as they are",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(plain(wire, 500 << 10)),
    },
    Row {
        name: "513 KiB of headers as they are",
        by_hub: true,
        expected: TOO_LARGE,
        attack: |wire| Box::pin(plain(wire, 513 << 10)),
    },
    Row {
        name: "headers beyond what the library takes",
        by_hub: false,
        expected: TOO_LARGE,
        attack: |wire| Box::pin(plain(wire, 1100 << 10)),
    },
    Row {
        name: "500 KiB of headers in Huffman's code",
        by_hub: true,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(huffman(wire, 500 << 10)),
    },
    Row {
        name: "513 KiB of headers in Huffman's code, which are less on the wire",
        by_hub: true,
        expected: TOO_LARGE,
        attack: |wire| Box::pin(huffman(wire, 513 << 10)),
    },
    Row {
        name: "headers that are within the limit as they are, and beyond it in Huffman's code",
        by_hub: true,
        expected: TOO_LARGE,
        attack: |wire| Box::pin(growing(wire)),
    },
    Row {
        name: "megabytes of headers in a few kilobytes of references",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(bomb(wire)),
    },
    Row {
        name: "a head in frames of one byte, as many as are taken",
        by_hub: false,
        expected: &[Expected::Passed],
        attack: |wire| Box::pin(bytewise(wire, 60)),
    },
    Row {
        name: "a head in frames of one byte",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(bytewise(wire, 1 << 20)),
    },
    Row {
        name: "a head in frames without a byte",
        by_hub: false,
        expected: &[Expected::Calmed],
        attack: |wire| Box::pin(endless(wire, Vec::new())),
    },
    Row {
        name: "a head without an end",
        by_hub: false,
        // It sends 16 KB frames without reading: the end of its connection may overtake the GOAWAY.
        expected: &[Expected::Calmed, Expected::Dropped],
        attack: |wire| Box::pin(endless(wire, literals(&[("x-endless", "x".repeat(16_000).as_str())]))),
    },
    Row {
        name: "another frame within a head",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(interrupted(wire)),
    },
    Row {
        name: "a name with capitals",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(field(wire, "X-Capital", "x")),
    },
    Row {
        name: "a value with a line break",
        by_hub: false,
        expected: &[Expected::Ended],
        attack: |wire| Box::pin(field(wire, "x-split", "a\r\nx-remote-user: root")),
    },
    Row {
        name: "a name that Go takes for malformed",
        by_hub: false,
        expected: &[Expected::Passed, Expected::Told(502, "cluster")],
        attack: |wire| Box::pin(field(wire, "x\"y", "z")),
    },
    Row {
        name: "a field of HTTP/1.1",
        by_hub: false,
        expected: REFUSED,
        attack: |wire| Box::pin(field(wire, "connection", "close")),
    },
    Row {
        name: "a pseudo-header behind a header",
        by_hub: false,
        expected: REFUSED,
        attack: |wire| Box::pin(field(wire, ":path", "/")),
    },
];

async fn get(wire: &mut Wire, more: &[u8]) -> Outcome {
    let target = wire.places.quick.clone();
    let block = [wire.block("GET", &target, &[]), more.to_vec()].concat();
    let stream = wire.stream();
    wire.send(&in_frames(END_STREAM, stream, &block)).await;
    Outcome::of(wire, stream).await
}

/// A header with so many bytes of a letter that takes eight bits either way.
async fn plain(wire: &mut Wire, bytes: usize) -> Outcome {
    get(wire, &literals(&[("x-long", &"X".repeat(bytes))])).await
}

/// A header with so many zeros, each five bits of zeros.
async fn huffman(wire: &mut Wire, bytes: usize) -> Outcome {
    const CODED: u8 = 0x80;
    let coded = vec![0; bytes / 8 * 5];
    let mut block = literals(&[("x-long", "")]);
    block.pop();
    let start = block.len();
    length(&mut block, coded.len());
    block[start] |= CODED;
    get(wire, &[block, coded].concat()).await
}

/// Bytes of 19 bits each.
async fn growing(wire: &mut Wire) -> Outcome {
    get(wire, &literals(&[("x-grows", &"\\".repeat(450_000))])).await
}

/// One line that is remembered, and referred to by a byte each time.
async fn bomb(wire: &mut Wire) -> Outcome {
    /// A literal that is remembered, and the first that is.
    const REMEMBERED: u8 = 0x40;
    const FIRST: u8 = 0xbe;
    let mut block = literals(&[("x-bomb", &"b".repeat(3 << 10))]);
    block[0] = REMEMBERED;
    block.extend(std::iter::repeat_n(FIRST, 4 << 10));
    get(wire, &block).await
}

/// Cut into frames of one byte, at most so many; the rest is in one more.
async fn bytewise(wire: &mut Wire, most: usize) -> Outcome {
    let target = wire.places.quick.clone();
    let block = [wire.block("GET", &target, &[]), literals(&[("x-long", &"x".repeat(8 << 10))])].concat();
    let stream = wire.stream();
    let most = most.min(block.len() - 1);
    let mut frames = encode(HEADERS, END_STREAM, stream, &block[..1]);
    for byte in &block[1..most] {
        frames.extend(encode(CONTINUATION, 0, stream, &[*byte]));
    }
    frames.extend(encode(CONTINUATION, END_HEADERS, stream, &block[most.max(1)..]));
    wire.send(&frames).await;
    Outcome::of(wire, stream).await
}

/// CVE-2024-27316 and its like: CONTINUATION until one side gives up.
async fn endless(wire: &mut Wire, part: Vec<u8>) -> Outcome {
    const FRAMES: usize = 20_000;
    let target = wire.places.quick.clone();
    let (block, stream) = (wire.block("GET", &target, &[]), wire.stream());
    wire.send(&encode(HEADERS, END_STREAM, stream, &block)).await;
    let (frame, batch) = (encode(CONTINUATION, 0, stream, &part), 100);
    let frames = frame.repeat(batch);
    for _ in 0..FRAMES / batch {
        if !wire.send(&frames).await {
            break;
        }
    }
    Outcome::of(wire, stream).await
}

async fn interrupted(wire: &mut Wire) -> Outcome {
    let target = wire.places.quick.clone();
    let (block, stream, other) = (wire.block("GET", &target, &[]), wire.stream(), wire.stream());
    let head = [encode(HEADERS, END_STREAM, stream, &block), in_frames(END_STREAM, other, &block)].concat();
    wire.send(&head).await;
    Outcome::of(wire, stream).await
}

async fn field(wire: &mut Wire, name: &str, value: &str) -> Outcome {
    get(wire, &literals(&[(name, value)])).await
}
