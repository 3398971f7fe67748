//! Any frames on a link, from either end: each requested stream has a destination, each refusal
//! fits a log, and when the link is over nothing counts as open.
//!
//! Input: one byte for the listening end, then frames: type, flags, stream, length, payload.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use net::prefixed::Prefixed;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
use tokio::time::{sleep, timeout};
use tunnel::{Destination, Hop, Incoming, Link, Serving, Settings, serve};

pub const WORDS: &[&str] = &[
    // HEADERS, END_HEADERS, stream 1: CONNECT db:5432.
    "\u{1}\u{4}\u{1}\u{12}\u{2}\u{7}CONNECT\u{1}\u{7}db:5432",
    "\u{1}\u{4}\u{3}\u{12}\u{2}\u{7}CONNECT\u{1}\u{7}db:5432",
    "\u{1}\u{5}\u{1}\u{1}",
    "\0\0\u{1}\u{5}hello",
    "\0\u{1}\u{1}\0",
    "\u{3}\0\u{1}\u{4}\0\0\0\u{8}",
    "\u{6}\0\0\u{8}12345678",
    "\u{7}\0\0\u{8}\0\0\0\u{1}\0\0\0\0",
    "\u{8}\0\0\u{4}\0\u{1}\0\0",
    "\u{8}\0\u{1}\u{4}\u{7f}\u{7f}\0\0",
    "\u{9}\u{4}\u{1}\0",
    "\u{4}\u{1}\0\0",
    "\0\u{e}tunnel-message\u{3}%0a",
    "\u{4}\0\0\u{6}\0\u{4}\0\0\0\0",
    "db:0",
    "tunnel-cluster",
    "\u{1}\u{4}\u{5}",
];

/// RFC 9113 §3.4, and SETTINGS without any.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
/// Longer than anything on a link waits.
const LONG: Duration = Duration::from_hours(1);

pub fn check(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let frames = frames(rest);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime");
    if first & 1 == 0 { runtime.block_on(served(&frames)) } else { runtime.block_on(linked(frames)) }
}

fn frames(mut rest: &[u8]) -> Vec<u8> {
    let mut frames = Vec::new();
    while let [kind, flags, stream, length, tail @ ..] = rest {
        let (payload, tail) = tail.split_at(usize::from(*length).min(tail.len()));
        let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
        frames.extend_from_slice(&length[1..]);
        frames.extend_from_slice(&[*kind, *flags, 0, 0, 0, *stream]);
        frames.extend_from_slice(payload);
        rest = tail;
    }
    frames
}

async fn served(frames: &[u8]) {
    let said = [PREFACE, SETTINGS, frames].concat();
    let io = Prefixed::new(tokio::io::empty(), said.into());
    let serving = Serving::default();
    let running = Arc::new(AtomicUsize::new(0));
    let handled = Arc::clone(&running);
    let handler = move |incoming: Incoming| {
        assert_eq!(Destination::parse(&incoming.destination.to_string()), Ok(incoming.destination.clone()));
        handled.fetch_add(1, Ordering::Relaxed);
        let handled = Arc::clone(&handled);
        async move {
            if let Ok(mut stream) = incoming.accept() {
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
            handled.fetch_sub(1, Ordering::Relaxed);
        }
    };
    let ended = timeout(LONG, serve(io, &Settings::default(), serving.clone(), handler)).await;
    let ended = ended.expect("a link whose peer has left ends");
    assert!(ended.err().is_none_or(|error| !error.to_string().contains(char::is_control)));
    sleep(LONG).await;
    assert_eq!((serving.streams(), running.load(Ordering::Relaxed)), (0, 0), "streams outlive their link");
}

async fn linked(frames: Vec<u8>) {
    let (near, mut far) = duplex(1 << 16);
    let agent = async move {
        let _ = far.write_all(SETTINGS).await;
        // Until the request is there: nothing else moves.
        sleep(Duration::from_millis(1)).await;
        let _ = far.write_all(&frames).await;
        sleep(Duration::from_millis(1)).await;
        let _ = far.shutdown().await;
        let _ = timeout(LONG, far.read_to_end(&mut Vec::new())).await;
    };
    let agent = tokio::spawn(agent);
    let Ok(link) = Link::start(near, &Settings::default(), Hop::Agent).await else { return };
    let to = Destination::parse("db:5432").expect("a destination");
    let opened = timeout(LONG, link.open(&to, None)).await.expect("a dial ends with its link");
    match opened {
        Ok(mut stream) => drop(timeout(LONG, stream.read_to_end(&mut Vec::new())).await.expect("so does a stream")),
        Err(error) => assert!(!error.to_string().contains(char::is_control), "{error:?}"),
    }
    assert_eq!(link.streams(), 0, "streams outlive their end");
    drop(link);
    agent.await.expect("the agent");
}
