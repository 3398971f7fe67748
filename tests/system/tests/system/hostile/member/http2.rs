//! Members in frames (RFC 9113).

use std::io;

use system_tests::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FrameMember, GOAWAY, HEADERS, MemberFrames, PING, PUSH_PROMISE,
    RST_STREAM, SETTINGS, STATUS_200, WINDOW_UPDATE, encode, in_frames, literals, setting,
};
use system_tests::prelude::*;
use tokio::sync::Notify;

use super::{Asked, Expected, beside_a_victim, name};

/// What a member does with a request: this, then that so many times.
struct Row {
    name: &'static str,
    first: fn(u32) -> Vec<u8>,
    again: fn(u32) -> Vec<u8>,
    times: usize,
    expected: &'static [Expected],
}

const REFUSED: &[Expected] = &[Expected::Refused];
const REFUSED_OR_CUT: &[Expected] = &[Expected::Refused, Expected::Cut];
/// The gateway's window of a stream.
const WINDOW: usize = 512 << 10;

const ROWS: &[Row] = &[
    Row { name: "a head without an end", first: begun, again: more_head, times: 4_000, expected: REFUSED },
    Row {
        name: "a head of two megabytes",
        first: |stream| in_frames(0, stream, &[STATUS_200, &literals(&[("x-large", &"x".repeat(2 << 20))])].concat()),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row { name: "a head in frames without a byte", first: begun, again: no_head, times: 20_000, expected: REFUSED },
    Row { name: "early hints without an end", first: nothing, again: hint, times: 300_000, expected: REFUSED },
    Row {
        name: "early hints of 500 KiB, and no answer",
        first: nothing,
        again: |stream| in_frames(0, stream, &[HINT.to_vec(), large()].concat()),
        times: 50,
        expected: &[Expected::Silence],
    },
    Row {
        name: "a storm of goodbyes",
        first: nothing,
        again: |_| encode(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
        times: 5_000,
        expected: REFUSED,
    },
    Row {
        name: "a goodbye that leaves out the request, each time",
        first: |_| encode(GOAWAY, 0, 0, &[0; 8]),
        again: nothing,
        times: 0,
        expected: &[Expected::Later],
    },
    Row {
        name: "a storm of SETTINGS",
        first: nothing,
        again: |_| encode(SETTINGS, 0, 0, &[]),
        times: 5_000,
        expected: REFUSED,
    },
    Row {
        name: "a storm of PINGs",
        first: nothing,
        again: |_| encode(PING, 0, 0, b"are you?"),
        times: 20_000,
        expected: &[Expected::Silence],
    },
    Row {
        name: "windows of streams beyond the largest",
        first: |_| encode(SETTINGS, 0, 0, &setting(4, 1 << 31)),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "a window beyond the largest on the connection",
        first: |_| encode(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "the end of a stream that nobody opened",
        first: |_| encode(RST_STREAM, 0, 999, &[0, 0, 0, 8]),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "a push",
        first: |stream| encode(PUSH_PROMISE, END_HEADERS, stream, &[0, 0, 0, 2, 0x82]),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "a frame larger than is taken",
        first: |stream| encode(DATA, 0, stream, &vec![0; 1 << 20]),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "a body before its head",
        first: |stream| encode(DATA, END_STREAM, stream, b"evil-words"),
        again: nothing,
        times: 0,
        expected: REFUSED,
    },
    Row {
        name: "a body of one byte a frame",
        first: |stream| {
            let bytes = encode(DATA, 0, stream, b"x").repeat(100_000);
            [encode(HEADERS, END_HEADERS, stream, STATUS_200), bytes, encode(DATA, END_STREAM, stream, &[])].concat()
        },
        again: nothing,
        times: 0,
        expected: &[Expected::Answer(100_000)],
    },
    Row {
        name: "a body in frames without a byte",
        first: |stream| encode(HEADERS, END_HEADERS, stream, STATUS_200),
        again: |stream| encode(DATA, 0, stream, &[]),
        times: 5_000,
        expected: &[Expected::Cut],
    },
    Row {
        name: "a body beyond its window",
        first: |stream| encode(HEADERS, END_HEADERS, stream, STATUS_200),
        again: |stream| encode(DATA, 0, stream, &[b'x'; 16 << 10]).repeat((4 * WINDOW) >> 14),
        times: 50,
        expected: &[Expected::CutUnread],
    },
    Row {
        name: "a body longer than it said",
        first: |stream| [with(stream, "content-length", "2"), encode(DATA, END_STREAM, stream, b"evil-words")].concat(),
        again: nothing,
        times: 0,
        expected: REFUSED_OR_CUT,
    },
    Row {
        name: "a length that is none",
        first: |stream| [with(stream, "content-length", "two"), encode(DATA, END_STREAM, stream, b"xx")].concat(),
        again: nothing,
        times: 0,
        expected: REFUSED_OR_CUT,
    },
    split("a value with a line break", |stream| with(stream, "x-split", "a\r\nx-evil-words: b")),
    split("a value with a NUL", |stream| with(stream, "x-split", "a\0evil-words")),
    split("a name with a line break", |stream| with(stream, "x-split\r\nx-evil-words", "a")),
    split("a name with capitals", |stream| with(stream, "X-Split", "a")),
    split("a field of HTTP/1.1", |stream| with(stream, "transfer-encoding", "chunked")),
    split("a second status", |stream| with(stream, ":status", "404")),
    split("a status of four digits", |stream| only(stream, "2000")),
    split("a status that is no number", |stream| only(stream, "2xx")),
    split("a status below all", |stream| only(stream, "099")),
    split("a switch of protocols", |stream| only(stream, "101")),
    split("no status", |stream| in_frames(0, stream, &literals(&[("x-evil", "a")]))),
];

const HINT: [u8; 5] = [0x08, 3, b'1', b'0', b'3'];

const fn split(name: &'static str, first: fn(u32) -> Vec<u8>) -> Row {
    Row { name, first, again: nothing, times: 0, expected: REFUSED }
}

fn nothing(_: u32) -> Vec<u8> {
    Vec::new()
}

fn begun(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_STREAM, stream, STATUS_200)
}

fn more_head(stream: u32) -> Vec<u8> {
    encode(CONTINUATION, 0, stream, &literals(&[("x-endless", &"x".repeat(16_000))]))
}

fn no_head(stream: u32) -> Vec<u8> {
    encode(CONTINUATION, 0, stream, &[])
}

fn hint(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_HEADERS, stream, &HINT)
}

fn large() -> Vec<u8> {
    literals(&[("x-large", &"x".repeat(500 << 10))])
}

fn with(stream: u32, name: &str, value: &str) -> Vec<u8> {
    in_frames(0, stream, &[STATUS_200, &literals(&[(name, value)])].concat())
}

fn only(stream: u32, status: &str) -> Vec<u8> {
    in_frames(0, stream, &literals(&[(":status", status)]))
}

async fn serve(mut frames: MemberFrames, row: &Row, is_read: &Notify) -> io::Result<()> {
    loop {
        let frame = frames.read().await?;
        if frame.kind != HEADERS {
            continue;
        }
        let sent = send(&mut frames, row, frame.stream).await;
        is_read.notify_one();
        sent?;
    }
}

async fn send(frames: &mut MemberFrames, row: &Row, stream: u32) -> io::Result<()> {
    frames.send_all(&(row.first)(stream)).await?;
    let again = (row.again)(stream);
    for _ in 0..row.times {
        frames.send_all(&again).await?;
    }
    frames.settled().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_attack_of_a_member_in_http2_is_anybody_elses() {
    let (mut members, mut rows) = (Vec::new(), Vec::new());
    for (number, row) in ROWS.iter().enumerate() {
        let is_read = Arc::<Notify>::default();
        let told = Arc::clone(&is_read);
        let member = FrameMember::start(move |_, frames| {
            let told = Arc::clone(&told);
            async move { serve(frames, row, &told).await }
        })
        .await;
        let secret = cluster(&name(number), &member);
        rows.push(Asked { row: row.name, secret, expected: row.expected, is_read: Some(is_read) });
        members.push(member);
    }
    Box::pin(beside_a_victim(FakeHub::start().await, &rows)).await;
}
