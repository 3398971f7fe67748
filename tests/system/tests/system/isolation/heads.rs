//! The head or trailers that one user, or one member, writes do not end the streams of others:
//! neither those on the connection to the member, nor those of a hub's other users.

mod forbidden;
mod pinned;
mod workloads;

use std::io;

use kit::wait::{WAIT, within};
use system_tests::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FrameClient, FrameMember, GOAWAY, HEADERS, MemberFrames, RST_STREAM,
    STATUS_200, admin_block, encode, literals,
};
use system_tests::{ADMIN, CLUSTER, Connection, Http, Streamed, Testbed, proxied};

/// Go's servers end the connection at a block of more than twice the mebibyte that they take
/// (`golang.org/x/net/http2.(*Framer).readMetaFrame`).
const MOST_OF_GO: usize = 2 << 20;
/// Bytes of a head that Go's servers put into one frame, whatever the peer takes
/// (`splitHeaderBlock`).
const FRAME_OF_GO: usize = 16 << 10;
const PROTOCOL_ERROR: u32 = 1;

/// Bytes that take 19 bits each in HPACK. As many as the front lets in of one request.
fn growing() -> String {
    "\\".repeat(1_040_000)
}

/// As many header lines as the front lets in, whose bytes take 25 bits each on average.
fn growing_lines() -> Vec<u8> {
    let value = "\u{2ce}".repeat(60);
    literals(&[("x-grows", value.as_str())]).repeat(6400)
}

/// A header block in frames that every peer takes.
fn in_frames(flags: u8, stream: u32, block: &[u8]) -> Vec<u8> {
    let mut parts = block.chunks(FRAME_OF_GO);
    let mut frames = encode(HEADERS, flags, stream, parts.next().unwrap_or_default());
    for part in parts {
        frames.extend(encode(CONTINUATION, 0, stream, part));
    }
    frames.extend(encode(CONTINUATION, END_HEADERS, stream, &[]));
    frames
}

/// Expects a Status that says so on the first stream.
async fn assert_told(client: &mut FrameClient, text: &str) {
    let status = client.until("an answer", |frame| (frame.kind, frame.stream) == (DATA, 1)).await;
    let status = String::from_utf8_lossy(&status.payload).into_owned();
    assert!(status.contains(text), "{status}");
}

/// Another user's watch of the member, on the only connection there is.
struct Victim {
    connection: Connection,
    watch: Streamed<'static>,
}

// === impl Victim ===

impl Victim {
    async fn watching(testbed: &Testbed) -> Self {
        let connection = testbed.connect(Http::H2).await;
        let watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
        Self { connection, watch }
    }

    /// Has the member send an event, which must arrive. Those of earlier requests are lost.
    async fn assert_goes_on(&mut self) {
        let answer = self.connection.get(&proxied(CLUSTER, "/tick")).await;
        assert_eq!(answer.status, 200);
        assert_eq!(self.watch.event().await, "event\n");
    }
}

/// A member in frames, as Go's servers treat header blocks. The first stream is a watch, and gets
/// an event for every other request; `answer` makes the answer to that from its stream.
async fn like_go(mut frames: MemberFrames, answer: impl Fn(u32) -> Vec<u8>) -> io::Result<()> {
    let (mut watch, mut block) = (None, 0);
    loop {
        let frame = frames.read().await?;
        if !matches!(frame.kind, HEADERS | CONTINUATION) {
            continue;
        }
        block += frame.payload.len();
        if block > MOST_OF_GO {
            let payload = [frame.stream.to_be_bytes(), PROTOCOL_ERROR.to_be_bytes()].concat();
            frames.send(GOAWAY, 0, 0, &payload).await?;
            return frames.shutdown().await;
        }
        if frame.flags & END_HEADERS == 0 {
            continue;
        }
        block = 0;
        let Some(watch) = watch else {
            watch = Some(frame.stream);
            frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
            continue;
        };
        frames.send_all(&answer(frame.stream)).await?;
        frames.send(DATA, 0, watch, b"event\n").await?;
    }
}

/// An empty 200.
fn ok(stream: u32) -> Vec<u8> {
    encode(HEADERS, END_STREAM | END_HEADERS, stream, STATUS_200)
}

/// 200 with `lines`.
fn ok_with(stream: u32, lines: &[u8]) -> Vec<u8> {
    in_frames(END_STREAM, stream, &[STATUS_200, lines].concat())
}

/// About so many bytes of header lines.
fn many(bytes: usize) -> Vec<u8> {
    let value = "v".repeat(100);
    literals(&[("x-of-the-workload", value.as_str())]).repeat(bytes / 120)
}

#[tokio::test]
async fn headers_that_grow_on_the_way_are_refused_and_streams_of_others_go_on() {
    let member = FrameMember::start(|_, frames| like_go(frames, ok)).await;
    let testbed = Testbed::with(&member).await;
    let mut victim = Victim::watching(&testbed).await;
    let growing = growing();
    let mut connection = testbed.connect(Http::H1).await;
    let answer = connection.call("GET", &proxied(CLUSTER, "/x"), &[("x-grows", &growing)], b"").await;
    assert!(answer.status_message(431, "BadRequest").contains("512 KiB"), "{}", answer.text());
    victim.assert_goes_on().await;

    let mut client = FrameClient::connect(&testbed).await;
    client.send_all(&in_frames(END_STREAM, 1, &admin_block("GET", &growing_lines()))).await;
    assert_told(&mut client, "512 KiB").await;
    victim.assert_goes_on().await;
}

#[tokio::test]
async fn trailers_that_grow_on_the_way_end_their_own_request() {
    // One member answers at once, the other when the request has ended.
    for at_once in [true, false] {
        let member = FrameMember::start(move |_, frames| {
            like_go(frames, move |stream| match stream {
                3 if at_once => encode(HEADERS, END_HEADERS, stream, STATUS_200),
                3 => Vec::new(),
                _ => ok(stream),
            })
        })
        .await;
        let testbed = Testbed::with(&member).await;
        let mut victim = Victim::watching(&testbed).await;
        let mut client = FrameClient::connect(&testbed).await;
        client.send_all(&encode(HEADERS, END_HEADERS, 1, &admin_block("POST", &[]))).await;
        if at_once {
            client.until("an answer", |frame| (frame.kind, frame.stream) == (HEADERS, 1)).await;
        }
        // The event of the upload's head: it is with the member.
        victim.watch.event().await;
        client.send_all(&in_frames(END_STREAM, 1, &growing_lines())).await;
        if at_once {
            client.until("the end", |frame| (frame.kind, frame.stream) == (RST_STREAM, 1)).await;
        } else {
            assert_told(&mut client, "512 KiB").await;
        }
        victim.assert_goes_on().await;
    }
}

/// The HTTP library ends the connection for a name of 64 KiB.
#[tokio::test]
async fn a_name_too_long_in_trailers_ends_its_own_request() {
    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let stream = client.request("POST", &proxied(CLUSTER, "/x"), false).await;
    client.send_all(&encode(DATA, 0, stream, b"body")).await;
    let name = "n".repeat(70_000);
    client.send_all(&in_frames(END_STREAM, stream, &literals(&[(name.as_str(), "")]))).await;
    assert_told(&mut client, "a header name of more than 32 KiB").await;
    client.settled().await;
}

#[tokio::test]
async fn a_name_that_go_takes_for_malformed_is_refused() {
    let member = FrameMember::start(|_, frames| like_go(frames, ok)).await;
    let testbed = Testbed::with(&member).await;
    let mut victim = Victim::watching(&testbed).await;
    let mut client = FrameClient::connect(&testbed).await;
    // With as much as takes more than one frame on the way.
    let more = [literals(&[("x\"y", "z")]), many(300 << 10)].concat();
    client.send_all(&in_frames(END_STREAM, 1, &admin_block("GET", &more))).await;
    assert_told(&mut client, "header name").await;
    victim.assert_goes_on().await;
}

#[tokio::test]
async fn a_large_head_of_a_workload_ends_nobodys_stream() {
    // Less than is passed on, more than is passed on, and as much as Go's reverse proxy takes from
    // the server behind it.
    for (bytes, status) in [(400 << 10, 200), (2 << 20, 502), (10 << 20, 502)] {
        let head = many(bytes);
        let member = FrameMember::start(move |_, frames| {
            let head = head.clone();
            like_go(frames, move |stream| if stream == 3 { ok_with(stream, &head) } else { ok(stream) })
        })
        .await;
        let testbed = Testbed::with(&member).await;
        let mut victim = Victim::watching(&testbed).await;
        let answer = testbed.connect(Http::H2).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, status, "{bytes} bytes: {}", answer.text());
        assert!(status == 200 || answer.text().contains(&format!("cluster {CLUSTER}")), "{}", answer.text());
        // The event of the answer before this one.
        assert_eq!(victim.watch.event().await, "event\n", "{bytes} bytes");
        victim.assert_goes_on().await;
    }
}

/// The HTTP library ends the connection for a name of 64 KiB, which API servers relay from any
/// server behind them.
#[tokio::test]
async fn a_name_too_long_for_the_library_ends_its_own_answer() {
    let name = "n".repeat(64 << 10);
    // At once, and behind as much as is held.
    for before in [0, 9 << 20] {
        let head = [many(before), literals(&[(name.as_str(), "")])].concat();
        let member = FrameMember::start(move |_, frames| {
            let head = head.clone();
            like_go(frames, move |stream| match stream {
                3 => ok_with(stream, &head),
                5 => {
                    let mut answer = encode(HEADERS, END_HEADERS, stream, STATUS_200);
                    answer.extend(encode(DATA, 0, stream, b"body"));
                    answer.extend(in_frames(END_STREAM, stream, &head));
                    answer
                }
                _ => ok(stream),
            })
        })
        .await;
        let testbed = Testbed::with(&member).await;
        let mut victim = Victim::watching(&testbed).await;
        let mut attacker = testbed.connect(Http::H2).await;
        let answer = attacker.get(&proxied(CLUSTER, "/x")).await;
        let message = answer.status_message(502, "InternalError");
        assert!(message.contains(CLUSTER) && message.contains("more than 32 KiB"), "{before}: {message}");
        assert!(attacker.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await.is_err(), "the trailers are cut off");
        for _ in 0..2 {
            assert_eq!(victim.watch.event().await, "event\n", "{before} bytes");
        }
        victim.assert_goes_on().await;
    }
}

#[tokio::test]
async fn a_members_name_that_go_takes_for_malformed_is_passed_on_to_nobody() {
    let mut head = literals(&[("x\"y", "z")]);
    head.extend(many(100 << 10));
    let member = FrameMember::start(move |_, frames| {
        let head = head.clone();
        like_go(frames, move |stream| if stream == 3 { ok_with(stream, &head) } else { ok(stream) })
    })
    .await;
    let testbed = Testbed::with(&member).await;
    let _victim = Victim::watching(&testbed).await;
    let answer = testbed.connect(Http::H2).await.get(&proxied(CLUSTER, "/x")).await;
    assert!(answer.status_message(502, "InternalError").contains(&format!("cluster {CLUSTER}")), "{}", answer.text());
}

#[tokio::test]
async fn trailers_of_a_member_that_grow_on_the_way_end_their_own_stream() {
    let trailers = growing_lines();
    let member = FrameMember::start(move |_, frames| {
        let trailers = trailers.clone();
        like_go(frames, move |stream| match stream {
            3 => {
                let mut answer = encode(HEADERS, END_HEADERS, stream, STATUS_200);
                answer.extend(encode(DATA, 0, stream, b"body"));
                answer.extend(in_frames(END_STREAM, stream, &trailers));
                answer
            }
            _ => ok(stream),
        })
    })
    .await;
    let testbed = Testbed::with(&member).await;
    let mut victim = Victim::watching(&testbed).await;
    let answer = testbed.connect(Http::H2).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
    assert!(answer.is_err(), "cut off, not passed on");
    assert_eq!(victim.watch.event().await, "event\n");
    victim.assert_goes_on().await;
}
