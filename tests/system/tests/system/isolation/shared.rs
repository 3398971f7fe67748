//! Connections are shared: with a hub's other users on one side, with a member's other users on the
//! other. A stream that one of them begins and gives up, or sends in the smallest of pieces, does
//! not end the connection of all.

use std::io;

use kit::client::H2Options;
use kit::member::BlackHole;
use system_tests::frames::{DATA, END_HEADERS, FrameMember, HEADERS, MemberFrames, RST_STREAM, STATUS_200, encode};
use system_tests::prelude::*;

use super::hub::Hub;

/// Streams given up at once: twice as many as h2 remembers by default (`DEFAULT_RESET_STREAM_MAX`).
const GIVEN_UP: usize = 100;
/// How often a late frame arrives for each of them. Frames for forgotten streams are more than the
/// 1024 that h2 by default forgives a connection in all its life (`DEFAULT_LOCAL_RESET_COUNT_MAX`).
const LATE: usize = 30;
/// Pieces of one byte: the whole window of one upload.
const TINY: usize = 256 << 10;

/// One byte for each stream. More at once would be one error: h2 answers frames that it reads
/// together by one reset.
fn late(streams: &[u32]) -> Vec<u8> {
    streams.iter().flat_map(|stream| encode(DATA, 0, *stream, b"x")).collect()
}

#[tokio::test]
async fn streams_given_up_do_not_end_those_of_others() {
    let member = FrameMember::start(|_, frames| send_late(frames)).await;
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let mut watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
    let mut logs = Vec::new();
    for _ in 0..GIVEN_UP {
        logs.push(connection.open_beside("GET", &proxied(CLUSTER, "/log?follow=true")).await.expect("a head"));
    }
    drop(logs);
    assert_eq!(watch.event().await, "event\n");
}

/// Answers every request at once and, when all but the first were given up, sends late frames for
/// them; then an event on the first.
async fn send_late(mut frames: MemberFrames) -> io::Result<()> {
    let (mut first, mut given_up) = (None, Vec::new());
    while given_up.len() < GIVEN_UP {
        let frame = frames.read().await?;
        match frame.kind {
            HEADERS => {
                first.get_or_insert(frame.stream);
                frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
            }
            RST_STREAM => given_up.push(frame.stream),
            _ => {}
        }
    }
    let late = late(&given_up);
    for _ in 0..LATE {
        frames.send_all(&late).await?;
        frames.settled().await?;
    }
    frames.send(DATA, 0, first.expect("asked before the others"), b"event\n").await?;
    frames.ignore().await
}

#[tokio::test]
async fn uploads_that_are_answered_early_do_not_end_the_hubs_connection() {
    let member = FakeMember::start(MemberOptions::default()).await;
    member.on("/early", |_| Reply::early(413, "too large"));
    let testbed = Testbed::with(&member).await;
    let mut hub = Hub::connect(&testbed, &member).await;
    let mut uploads = Vec::new();
    for _ in 0..GIVEN_UP {
        uploads.push(hub.client.request("POST", &proxied(CLUSTER, "/early"), false).await);
    }
    for _ in 0..GIVEN_UP {
        let answered = |stream| uploads.contains(&stream);
        hub.client.until("the end of an upload", |frame| frame.kind == RST_STREAM && answered(frame.stream)).await;
    }
    let late = late(&uploads);
    for _ in 0..LATE {
        hub.client.send_all(&late).await;
        hub.client.settled().await;
    }
    hub.assert_goes_on().await;
}

#[tokio::test]
async fn an_upload_in_tiny_pieces_does_not_end_the_hubs_connection() {
    let member = FakeMember::start(MemberOptions::default()).await;
    let hole = BlackHole::start().await;
    // An upload is not read before its member can be reached.
    let url = format!("https://{}", hole.address());
    let lost = ClusterSecret::new("vela-system", "lost").endpoint(&url).ca(&member.ca_pem()).token(MEMBER_TOKEN);
    let testbed = Testbed::builder().cluster("lost", lost).cluster(CLUSTER, cluster(CLUSTER, &member)).start().await;
    let mut hub = Hub::connect(&testbed, &member).await;
    let upload = hub.client.request("POST", &proxied("lost", "/x"), false).await;
    hub.client.send_all(&encode(DATA, 0, upload, b"x").repeat(TINY)).await;
    hub.assert_goes_on().await;
}

#[tokio::test]
async fn a_stream_of_bytes_that_nobody_reads_ends_no_others() {
    unread(1, 1).await;
}

#[tokio::test]
async fn followed_logs_that_nobody_reads_end_no_others() {
    unread(90, 100).await;
}

/// A watch goes on beside `floods` streams of `length` bytes a frame whose client has stopped
/// reading.
async fn unread(floods: usize, length: usize) {
    let member = FrameMember::start(move |_, frames| flood(frames, floods, length)).await;
    let testbed = Testbed::with(&member).await;
    let connection = testbed.connect(Http::H2).await;
    let mut watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
    let options = H2Options { stream_window: 1 << 10, ..H2Options::default() };
    let stalled =
        Connection::from(testbed.client().h2_options(options).h2().await.expect("a connection")).bearer(ADMIN);
    let mut unread = Vec::new();
    for _ in 0..floods {
        unread.push(stalled.open_beside("GET", &proxied(CLUSTER, "/log?follow=true")).await.expect("a head"));
    }
    assert_eq!(watch.event().await, "event\n");
}

/// Answers the first request with a watch, the others with as much as fills their windows; then the
/// watch has an event.
async fn flood(mut frames: MemberFrames, floods: usize, length: usize) -> io::Result<()> {
    let mut streams = Vec::new();
    while streams.len() <= floods {
        let frame = frames.read().await?;
        if frame.kind == HEADERS {
            streams.push(frame.stream);
            frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
        }
    }
    for stream in &streams[1..] {
        for _ in 0..500 * 1024 / length / 512 {
            frames.send_all(&encode(DATA, 0, *stream, &vec![b'x'; length]).repeat(512)).await?;
        }
        frames.settled().await?;
    }
    frames.send(DATA, 0, streams[0], b"event\n").await?;
    frames.ignore().await
}
