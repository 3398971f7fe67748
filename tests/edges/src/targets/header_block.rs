//! Any header blocks of an HTTP/2 client: every head is read as h2 alone reads it, but for fields
//! with a name that is too long, or without a name, and a head with one of them is marked.
//!
//! Input: the blocks of several requests, `||` between them, without the fields that every request
//! has. `<long>` stands for a field with such a name, `<kept>` for one that is to be remembered.

use std::collections::BTreeMap;

use gateway::edges::{self, Head, Heads};
use http::HeaderMap;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, duplex};

pub const WORDS: &[&str] = &[
    "||",
    "<long>",
    "<kept>",
    "\0\x01a\x01b",
    "@\x01c\x01d",
    "\x10\x01e\x01f",
    "\0\x01a\x7f",
    "@\x7f",
    "\x0f",
    "?",
    "?\u{1}",
    " ",
    "\x01A\x01b",
    "\0\0\x01b",
    "@\0\x01b",
    "\0\u{1}a\x58<long>",
    "\x01:",
    "\x05:path\x01/",
    "\x02te\x08trailers",
    "\x0econtent-length\x011",
];

/// Placeholders that are filled in: more would be a head that is refused for its length.
const MOST_FILLED: usize = 3;
/// Bytes of a name that is too long.
const LONG: usize = 33 * 1024;
/// [`LONG`] as a string's length (RFC 7541 §5.1).
const LONG_CODED: [u8; 4] = [0x7f, 0x81, 0x87, 0x02];
/// `:method: GET`, `:scheme: https`, `:path: /`, `:authority: a`.
const REQUEST: [u8; 6] = [0x82, 0x87, 0x84, 0x41, 0x01, b'a'];
/// A client's preface, and SETTINGS without any.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// The most that a frame may carry at first (RFC 9113 §6.5.2).
const FRAME: usize = 16 * 1024;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

pub fn check(input: &[u8]) {
    let mut blocks = filled(input);
    // Its answer shows that all others were read.
    blocks.push(REQUEST.to_vec());
    let last = stream(blocks.len() - 1);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let plain = runtime.block_on(received(connection(&blocks, 1), last, false));
    let ours = runtime.block_on(received(connection(&blocks, 3), last, true));
    assert!(ours.is_whole || !plain.is_whole, "the connection is ended for nothing");
    assert!(plain.is_whole || !ours.is_whole || ours.is_any_marked, "a connection goes on that is broken");
    let heads = |heads: Vec<Head>| -> BTreeMap<_, _> {
        heads.into_iter().map(|(stream, headers, is_marked)| (stream, (headers, is_marked))).collect()
    };
    let (is_plain_whole, is_whole) = (plain.is_whole, ours.is_whole);
    let (plain, ours) = (heads(plain.heads), heads(ours.heads));
    for (number, block) in blocks.iter().enumerate() {
        let stream = stream(number);
        match (ours.get(&stream), plain.get(&stream)) {
            (Some((headers, is_marked)), Some((plain, _))) => compare(stream, headers, *is_marked, plain),
            // What h2 alone refuses it still refuses, except for fields that were taken out, and
            // for forbidden ones in a frame before the last: it leaves these out, and goes on.
            (Some((_, is_marked)), None) => {
                assert!(*is_marked || !is_plain_whole || block.len() > FRAME, "request {stream} is none");
            }
            (None, Some(_)) => assert!(!is_whole, "request {stream} is lost"),
            (None, None) => {}
        }
    }
}

fn compare(stream: u32, ours: &HeaderMap, is_marked: bool, plain: &HeaderMap) {
    let has_long = plain.keys().any(|name| name.as_str().len() >= LONG);
    assert!(is_marked || !has_long, "request {stream} goes on with its long name");
    assert!(is_marked_for_a_reason(is_marked, plain), "request {stream} is refused for nothing");
    assert_eq!(fields(ours, is_marked), fields(plain, is_marked), "request {stream}");
}

/// Huffman's code of a name may be longer than the name.
fn is_marked_for_a_reason(is_marked: bool, headers: &HeaderMap) -> bool {
    !is_marked || headers.keys().any(|name| name.as_str().len() >= LONG / 4)
}

/// The fields that must be the same: the replacement of a long one does not count.
fn fields(headers: &HeaderMap, is_marked: bool) -> Vec<(&str, &[u8])> {
    let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    let is_filler = |name: &str| is_marked && (name == "x" || name.len() >= LONG / 4);
    fields.filter(|(name, _)| !is_filler(name)).collect()
}

/// The bytes of a client, each block in so many frames or more: the gateway looks into blocks of
/// several, and h2 reads blocks of one without fail. Behind frames that begin with a field, h2
/// takes some blocks for broken, and it takes a field without a name for one that is not whole.
fn connection(blocks: &[Vec<u8>], least: usize) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    for (number, block) in blocks.iter().enumerate() {
        let stream = stream(number);
        let parts: Vec<_> =
            block.chunks(block.len().div_ceil(least).min(if least == 1 { usize::MAX } else { FRAME })).collect();
        for (part, payload) in parts.iter().enumerate() {
            let (kind, begins) = if part == 0 { (HEADERS, END_STREAM) } else { (CONTINUATION, 0) };
            let ends = if part + 1 == parts.len() { END_HEADERS } else { 0 };
            bytes.extend_from_slice(&u32::try_from(payload.len()).expect("a frame").to_be_bytes()[1..]);
            bytes.extend_from_slice(&[kind, begins | ends]);
            bytes.extend_from_slice(&stream.to_be_bytes());
            bytes.extend_from_slice(payload);
        }
    }
    bytes
}

/// The stream of the request with this number.
fn stream(number: usize) -> u32 {
    u32::try_from(2 * number + 1).expect("few blocks")
}

/// The blocks, whole.
fn filled(input: &[u8]) -> Vec<Vec<u8>> {
    let (mut blocks, mut rest, mut left) = (vec![REQUEST.to_vec()], input, MOST_FILLED);
    while let Some((byte, behind)) = rest.split_first() {
        let block = blocks.last_mut().expect("one at least");
        if let Some(behind) = rest.strip_prefix(b"||") {
            blocks.push(REQUEST.to_vec());
            rest = behind;
        } else if let Some((first, behind)) = placeholder(rest).filter(|_| left > 0) {
            left -= 1;
            block.push(first);
            block.extend_from_slice(&LONG_CODED);
            block.resize(block.len() + LONG, b'n');
            block.extend_from_slice(b"\x01v");
            rest = behind;
        } else {
            block.push(*byte);
            rest = behind;
        }
    }
    blocks
}

/// The first byte of the field that is meant, without indexing or with (RFC 7541 §6.2), and what
/// follows.
fn placeholder(input: &[u8]) -> Option<(u8, &[u8])> {
    let long = input.strip_prefix(b"<long>").map(|behind| (0, behind));
    long.or_else(|| input.strip_prefix(b"<kept>").map(|behind| (0x40, behind)))
}

/// The requests that a server reads from the bytes. The client leaves when the last request is
/// answered: h2 forgets unaccepted requests when their connection ends.
async fn received(bytes: Vec<u8>, last: u32, is_filtered: bool) -> Heads {
    let (client, server) = duplex(FRAME);
    let (answers, mut requests) = tokio::io::split(client);
    let exchange = async {
        let writing = async { requests.write_all(&bytes).await };
        let _ = tokio::join!(writing, until_answered(answers, last));
        let _ = requests.shutdown().await;
    };
    let (heads, ()) = tokio::join!(edges::http2(server, is_filtered), exchange);
    heads
}

/// Reads frames up to one for the stream `last`, or to the end.
async fn until_answered(mut answers: impl AsyncRead + Unpin, last: u32) {
    let mut head = [0; 9];
    while answers.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        if answers.read_exact(&mut payload).await.is_err() || stream == last {
            return;
        }
    }
}
