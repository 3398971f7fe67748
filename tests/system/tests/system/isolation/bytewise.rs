//! Members that send a byte a frame, as what they relay does when it flushes each byte, to clients
//! that have stopped reading. h2 counts such frames over the whole connection to the member, which
//! all users share.

use std::io;
use std::sync::Arc;

use kit::client::H2Options;
use kit::wait::{WAIT, within};
use system_tests::frames::{
    DATA, END_HEADERS, END_STREAM, FrameMember, HEADERS, MemberFrames, RST_STREAM, STATUS_200, encode, literals,
};
use system_tests::{ADMIN, CLUSTER, Connection, Streamed, Testbed, proxied};
use tokio::sync::Notify;

/// The window the gateway gives a stream: each byte of it is a frame.
const WINDOW: usize = 512 * 1024;
/// Frames of the streams beside the one that fills its window.
const FEWER: usize = WINDOW / 16;
/// Frames in one write.
const BATCH: usize = 4096;
const INTERNAL_ERROR: [u8; 4] = [0, 0, 0, 2];
/// Time for millions of frames.
const FLOOD: std::time::Duration = WAIT.saturating_mul(10);

/// Steps that the test permits the member, in this order.
#[derive(Default)]
struct Turns {
    flood: Notify,
    flooded: Notify,
    event: Notify,
}

fn byte(index: usize) -> u8 {
    u8::try_from(index % 251).expect("below 251")
}

/// Answers so many requests with a head each; returns their streams.
async fn begun<const N: usize>(frames: &mut MemberFrames) -> io::Result<[u32; N]> {
    let mut streams = [0; N];
    for stream in &mut streams {
        let mut frame = frames.read().await?;
        while frame.kind != HEADERS {
            frame = frames.read().await?;
        }
        frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
        *stream = frame.stream;
    }
    Ok(streams)
}

/// Answers a watch and three more with a head each, fills the window of one of the three, and ends
/// each in another way.
async fn member(mut frames: MemberFrames, turns: Arc<Turns>) -> io::Result<()> {
    let [watch, plain, trailed, reset] = begun(&mut frames).await?;
    turns.flood.notified().await;
    for first in (0..WINDOW).step_by(BATCH) {
        for (stream, _) in [(plain, WINDOW), (trailed, FEWER), (reset, FEWER)].iter().filter(|(_, all)| first < *all) {
            let batch = (first..first + BATCH).flat_map(|index| encode(DATA, 0, *stream, &[byte(index)]));
            frames.send_all(&batch.collect::<Vec<_>>()).await?;
        }
    }
    frames.settled().await?;
    frames.send(DATA, END_STREAM, plain, &[]).await?;
    frames.send(HEADERS, END_HEADERS | END_STREAM, trailed, &literals(&[("x-end", "whole")])).await?;
    frames.send(RST_STREAM, 0, reset, &INTERNAL_ERROR).await?;
    frames.settled().await?;
    turns.flooded.notify_one();
    turns.event.notified().await;
    frames.send(DATA, 0, watch, b"event\n").await?;
    frames.ignore().await
}

async fn opened(connection: &Connection, rest: &str) -> Streamed<'static> {
    let answer = within(WAIT, "a head", connection.open_beside("GET", &proxied(CLUSTER, rest))).await;
    answer.expect("a head")
}

fn assert_in_order(body: &[u8], length: usize) {
    let wrong = body.iter().enumerate().position(|(index, found)| *found != byte(index));
    assert_eq!((wrong, body.len()), (None, length));
}

#[tokio::test]
async fn unread_answers_of_a_byte_a_frame_end_nobody_elses() {
    let turns = Arc::<Turns>::default();
    let shared = Arc::clone(&turns);
    let served = FrameMember::start(move |_, frames| member(frames, Arc::clone(&shared))).await;
    let testbed = Testbed::with(&served).await;
    // The client takes few, so the others wait in the gateway.
    let options = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let connection = testbed.client().h2_options(options).h2().await.expect("a connection");
    let connection = Connection::from(connection).bearer(ADMIN);
    let mut watch = opened(&connection, "/watch?watch=1").await;
    let plain = opened(&connection, "/log").await;
    let trailed = opened(&connection, "/log").await;
    let reset = opened(&connection, "/log").await;

    turns.flood.notify_one();
    tokio::select! {
        () = within(FLOOD, "the flood", turns.flooded.notified()) => {}
        cut = watch.line() => panic!("the watch heard {cut:?} while others did not read"),
    }
    turns.event.notify_one();
    assert_eq!(watch.event().await, "event\n");

    // A client that reads in the end gets everything, with the right ending.
    let plain = within(WAIT, "the bytes", plain.whole()).await.expect("a clean end");
    assert_in_order(&plain.body, WINDOW);
    let trailed = within(WAIT, "the bytes", trailed.whole()).await.expect("a clean end");
    assert_in_order(&trailed.body, FEWER);
    assert_eq!(trailed.trailers.get("x-end").map(http::HeaderValue::as_bytes), Some(&b"whole"[..]));
    let cut = within(WAIT, "the end", reset.whole()).await;
    assert!(cut.is_err(), "an answer that was cut off looks whole");
}

/// Answers a watch and another with a head each, and goes on with the other for long after its
/// client has left.
async fn deaf(mut frames: MemberFrames, turns: Arc<Turns>) -> io::Result<()> {
    let [watch, log] = begun(&mut frames).await?;
    while frames.read().await?.kind != RST_STREAM {}
    // More than h2 takes on a connection by default: half of its window, at 255 bytes a frame.
    for _ in (0..4_300_000).step_by(BATCH) {
        frames.send_all(&encode(DATA, 0, log, b"x").repeat(BATCH)).await?;
        frames.settled().await?;
    }
    frames.send(DATA, 0, watch, b"event\n").await?;
    turns.flooded.notify_one();
    frames.ignore().await
}

/// h2 counts short frames that it throws away, and only larger ones make up for them.
#[tokio::test]
async fn what_comes_of_an_answer_after_its_client_has_left_ends_nobody_elses() {
    let turns = Arc::<Turns>::default();
    let shared = Arc::clone(&turns);
    let served = FrameMember::start(move |_, frames| deaf(frames, Arc::clone(&shared))).await;
    let testbed = Testbed::with(&served).await;
    let connection = Connection::from(testbed.client().h2().await.expect("a connection")).bearer(ADMIN);
    let mut watch = opened(&connection, "/watch?watch=1").await;
    drop(opened(&connection, "/log").await);
    within(FLOOD, "the flood", turns.flooded.notified()).await;
    assert_eq!(watch.event().await, "event\n");
}
