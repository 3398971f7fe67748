//! Clients that upload a byte a frame to members that do not read. h2 counts such frames over the
//! whole connection from the client, which is a hub's and so shared by all its users, and keeps
//! each in some 250 bytes.

use kit::member::BodyEnd;
use system_tests::frames::{DATA, END_STREAM, FrameClient, HEADERS, RST_STREAM, encode};
use system_tests::prelude::*;

across_http!(stalled_uploads_of_a_byte_a_frame_end_nobody_elses, a_reset_without_an_error_is_no_end_of_an_upload);

/// No cluster.
const UNKNOWN: &str = "unknown";

/// The window the gateway gives a stream: each byte of it is a frame.
const WINDOW: usize = 256 * 1024;
/// Frames in one write.
const BATCH: usize = 4096;
/// Frames of each upload: one fills its window.
const UPLOADS: [usize; 4] = [WINDOW, WINDOW / 16, WINDOW / 16, WINDOW / 16];
/// More frames of one byte than h2 takes on a connection by default: half of its window, at 255
/// bytes a frame.
const FLOOD: usize = 4_300_000;
const NO_ERROR: [u8; 4] = [0; 4];

async fn stalled_uploads_of_a_byte_a_frame_end_nobody_elses(member: Http) {
    let member = member.member().await;
    let gate = Gate::new();
    let script_gate = gate.clone();
    member.on("/upload", move |_| Reply::json(201, &json!({})).after(&script_gate));
    let mut streams = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let watch = client.request("GET", &proxied(CLUSTER, "/watch?watch=1"), true).await;
    let (_, events) = streams.next().await;
    client.until("the head of the watch", |frame| frame.kind == HEADERS && frame.stream == watch).await;
    member.next_request().await;

    let mut uploads = Vec::new();
    for _ in UPLOADS {
        uploads.push(client.request("POST", &proxied(CLUSTER, "/upload"), false).await);
    }
    for first in (0..WINDOW).step_by(BATCH) {
        for (upload, _) in uploads.iter().zip(UPLOADS).filter(|(_, all)| first < *all) {
            client.send_all(&encode(DATA, 0, *upload, b"x").repeat(BATCH)).await;
        }
        client.settled().await;
    }
    assert!(events.send("event\n").await);
    client.until("an event", |frame| frame.kind == DATA && frame.stream == watch).await;

    // A member that reads at last gets all of it.
    gate.open();
    for upload in &uploads {
        client.send_all(&encode(DATA, END_STREAM, *upload, b"")).await;
    }
    // They may have reached the member in any order.
    let mut left = uploads;
    while !left.is_empty() {
        let answer = client.until("an answer", |frame| frame.kind == HEADERS && left.contains(&frame.stream)).await;
        left.retain(|upload| *upload != answer.stream);
    }
    let mut taken = Vec::new();
    for _ in UPLOADS {
        let request = member.next_request().await;
        assert_eq!(request.body_ended().await, BodyEnd::Complete);
        taken.push(request.body_bytes());
    }
    taken.sort_unstable_by(|one, other| other.cmp(one));
    assert_eq!(taken, UPLOADS.map(|frames| frames as u64));
}

/// h2 counts short frames that it throws away, and only larger ones make up for them.
#[tokio::test]
async fn frames_of_an_answered_upload_end_nobody_elses() {
    let member = Http::H2.member().await;
    let mut streams = member.streams("/watch");
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let watch = client.request("GET", &proxied(CLUSTER, "/watch?watch=1"), true).await;
    let (_, events) = streams.next().await;
    let upload = client.request("POST", &proxied(UNKNOWN, "/upload"), false).await;
    client.until("a refusal", |frame| frame.kind == HEADERS && frame.stream == upload).await;
    for _ in (0..FLOOD).step_by(BATCH) {
        client.send_all(&encode(DATA, 0, upload, b"x").repeat(BATCH)).await;
        client.settled().await;
    }
    assert!(events.send("event\n").await);
    client.until("an event", |frame| frame.kind == DATA && frame.stream == watch).await;
}

async fn a_reset_without_an_error_is_no_end_of_an_upload(member: Http) {
    let member = member.member().await;
    member.on("/upload", |_| Reply::json(201, &json!({})));
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let upload = client.request("POST", &proxied(CLUSTER, "/upload"), false).await;
    client.send_all(&encode(DATA, 0, upload, b"half")).await;
    let request = member.next_request().await;
    request.body_reached(4).await;
    client.send_all(&encode(RST_STREAM, 0, upload, &NO_ERROR)).await;
    assert_eq!(request.body_ended().await, BodyEnd::Broken, "half a body must not look like a whole one");
}
