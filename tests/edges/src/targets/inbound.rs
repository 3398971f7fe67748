//! Any frames of a client or of a member: the bytes passed on to the HTTP/2 library do not depend
//! on the pieces in which they come, and equal those that were sent but for long heads; no push is
//! among them. The library behind that comes to an end with them.
//!
//! Input: one byte for the sender, then frames: type, flags, stream, length, payload. In the
//! highest bit of the stream: the payload is repeated, so that heads and frames are long.

use gateway::edges;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::runtime::{Builder, Runtime};

pub const WORDS: &[&str] = &[
    // HEADERS of streams 1, 3 and 5, whole and not; CONTINUATION.
    "\u{1}\u{5}\u{1}\u{6}\u{2}\u{1}a\0\u{1}b",
    "\u{1}\u{1}\u{1}\u{3}\0\u{1}a",
    "\u{1}\u{4}\u{3}\0",
    "\u{1}\0\u{5}\u{5}\0\u{1}a\u{1}b",
    "\t\0\u{1}\u{2}\u{1}b",
    "\t\u{4}\u{1}\u{2}\u{1}b",
    "\t\u{4}\u{5}\u{5}\0\u{1}a\u{1}b",
    "\0\0\u{1}\u{5}hello",
    "\0\u{1}\u{1}\0",
    "\u{2}\0\u{3}\u{5}\0\0\0\u{3}\u{10}",
    "\u{3}\0\u{1}\u{4}\0\0\0\u{8}",
    "\u{4}\0\0\u{6}\0\u{4}\0\0\0\0",
    "\u{4}\u{1}\0\0",
    "\u{5}\u{4}\u{1}\u{5}\0\0\0\u{2}\u{2}",
    "\u{6}\0\0\u{8}12345678",
    "\u{7}\0\0\u{8}\0\0\0\u{1}\0\0\0\0",
    "\u{8}\0\0\u{4}\0\u{1}\0\0",
];

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const CONTINUATION: u8 = 9;
const FRAME_HEAD: usize = 9;
/// RFC 9113 §3.4, and SETTINGS without any.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NO_SETTINGS: &[u8] = &[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];
/// Times that a payload is repeated.
const OFTEN: usize = 200;
/// Limit of the sent bytes: a few long heads.
const LONGEST: usize = 256 << 10;
/// Bytes that are read at a time.
const PIECES: [usize; 3] = [1 << 20, 4099, 7];

pub fn check(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let is_members = first & 1 == 1;
    let begin: &[u8] = if is_members { &[] } else { PREFACE };
    let sent = [begin, NO_SETTINGS, &frames(rest)].concat();
    let runtime = Builder::new_current_thread().build().expect("a runtime");
    let pieces = PIECES.map(|piece| passed(&runtime, &sent, piece, is_members));
    let (whole, end) = &pieces[0];
    for (other, other_end) in &pieces[1..] {
        assert_eq!(end, other_end, "it ends in another way in pieces");
        // Bytes before the end may be thrown away with those that were read along with it.
        let same = whole.len().min(other.len());
        assert!(whole[..same] == other[..same], "it reads differently in pieces");
        assert!(end.is_some() || whole.len() == other.len(), "something is lost in pieces");
    }
    let after = whole.get(begin.len()..).unwrap_or_default();
    let (before, came) = (split(&sent[begin.len()..]), split(after));
    assert!(came.iter().all(|frame| frame[3] != PUSH_PROMISE), "a push is passed on");
    let (before, came) = (beside_heads(&before), beside_heads(&came));
    assert!(before.starts_with(&came), "what is no head is not as it was sent");
    assert!(end.is_some() || before.len() == came.len(), "frames are lost");
    library(&runtime, sent, is_members);
}

fn frames(mut rest: &[u8]) -> Vec<u8> {
    const LONG: u8 = 0x80;
    let mut frames = Vec::new();
    while let [kind, flags, stream, length, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let payload = payload.repeat(if stream & LONG == 0 { 1 } else { OFTEN });
        if frames.len() + payload.len() > LONGEST {
            break;
        }
        frames.extend_from_slice(&u32::try_from(payload.len()).expect("a frame").to_be_bytes()[1..]);
        frames.extend_from_slice(&[*kind, *flags, 0, 0, 0, stream & !LONG]);
        frames.extend_from_slice(&payload);
        rest = tail;
    }
    frames
}

/// Whole frames.
fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let [a, b, c, ..] = bytes {
        let size = FRAME_HEAD + u32::from_be_bytes([0, *a, *b, *c]) as usize;
        let Some((frame, rest)) = bytes.split_at_checked(size) else { break };
        frames.push(frame);
        bytes = rest;
    }
    frames
}

fn beside_heads<'f>(frames: &[&'f [u8]]) -> Vec<&'f [u8]> {
    frames.iter().copied().filter(|frame| !matches!(frame[3], HEADERS | CONTINUATION)).collect()
}

fn passed(runtime: &Runtime, sent: &[u8], piece: usize, is_members: bool) -> (Vec<u8>, Option<String>) {
    runtime.block_on(async {
        let (mut far, near) = duplex(piece);
        let writing = async {
            let _ = far.write_all(sent).await;
            drop(far);
        };
        tokio::join!(edges::inbound(near, is_members), writing).0
    })
}

/// The sender leaves.
fn library(runtime: &Runtime, sent: Vec<u8>, is_members: bool) {
    let (far, near) = duplex(1 << 16);
    runtime.block_on(async {
        if is_members {
            let answer = tokio::join!(edges::member(near), said(far, sent)).0;
            assert!(answer.is_none_or(|(head, _)| !head.status().is_informational()), "an interim answer is none");
        } else {
            let heads = tokio::join!(edges::http2(near, true), said(far, sent)).0.heads;
            assert!(heads.iter().all(|(stream, ..)| stream % 2 == 1), "a request on a stream that is none");
        }
    });
}

async fn said(far: DuplexStream, sent: Vec<u8>) {
    let (mut answers, mut requests) = tokio::io::split(far);
    let writing = async {
        let _ = requests.write_all(&sent).await;
        let _ = requests.shutdown().await;
    };
    tokio::join!(writing, async { drop(answers.read_to_end(&mut Vec::new()).await) });
}
