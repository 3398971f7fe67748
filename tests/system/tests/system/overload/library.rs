//! Memory that the HTTP library has for a user counts for as long as it has it, whether or not the
//! request that it was for is still there.

use std::io;

use kit::exposition;
use kit::wait::unless_quiet;
use system_tests::frames::{
    DATA, END_HEADERS, END_STREAM, FrameClient, FrameMember, HEADERS, MemberFrames, RST_STREAM, STATUS_200,
    admin_block, encode, in_frames, literals,
};
use system_tests::prelude::*;
use system_tests::socket_buffers;

use super::held::metric;

/// A field of one byte (`accept-charset`, RFC 7541 appendix A), which is 72 in memory.
const FIELD: u8 = 0x8f;
const FIELDS: usize = 8000;
/// More than that takes in memory is not counted as its own text.
const LEAST: u64 = 64 * FIELDS as u64;
/// Size of a head that fills sockets.
const LARGE: usize = 400 << 10;
const REQUESTS: usize = 60;
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// Number of heads after which nothing goes out.
fn enough() -> usize {
    socket_buffers() / LARGE + 2
}

fn large() -> Vec<u8> {
    literals(&[("x-large", &"x".repeat(LARGE))])
}

async fn held(root: &mut Connection) -> u64 {
    metric(root, "cluster_gateway_held_bytes").await
}

/// A member that reads nothing, and the gateway with a connection to it that takes nothing more.
async fn deaf(client: &mut Option<FrameClient>, root: &mut Option<Connection>) -> (RawMember, Testbed) {
    let member = RawMember::always(vec![Act::Tls(kit::pki::ALPN_H2), Act::Write(SETTINGS.into()), Act::Hold]).await;
    let testbed = Testbed::with(&member).await;
    let mut frames = FrameClient::connect(&testbed).await;
    let head = admin_block("GET", &large());
    for _ in 0..enough() {
        let stream = frames.stream();
        frames.send_all(&in_frames(END_STREAM, stream, &head)).await;
    }
    let mut connection = testbed.connect(Http::H2).await;
    becomes(WAIT, "a connection to the member", async || {
        exposition::sum::<u64>(&connection.get("/metrics").await.text(), "cluster_gateway_upstream_connections", "") > 0
    })
    .await;
    becomes(WAIT, "its heads", async || held(&mut connection).await > (enough() * LARGE) as u64).await;
    (*client, *root) = (Some(frames), Some(connection));
    (member, testbed)
}

/// The library gets few large heads at a time: the others wait, and go with their requests.
#[tokio::test]
async fn heads_of_cancelled_requests_count_as_long_as_the_library_has_them() {
    let (mut client, mut root) = (None, None);
    let (_member, _testbed) = deaf(&mut client, &mut root).await;
    let (mut client, mut root) = (client.expect("connected"), root.expect("connected"));
    let before = held(&mut root).await;
    let head = admin_block("GET", &[FIELD; FIELDS]);
    let streams: Vec<u32> = (0..REQUESTS).map(|_| client.stream()).collect();
    for stream in &streams {
        client.send_all(&in_frames(END_STREAM, *stream, &head)).await;
    }
    let all = before + REQUESTS as u64 * LEAST;
    becomes(WAIT, "they are under way", async || held(&mut root).await > all).await;
    for stream in &streams {
        client.send_all(&encode(RST_STREAM, 0, *stream, &CANCEL)).await;
    }
    let few = before + REQUESTS as u64 * LEAST / 10;
    becomes(WAIT, "those that waited are gone", async || held(&mut root).await < few).await;
    // It cancels all others, too.
    drop(client);
    let gone = becomes(WAIT, "nothing", async || held(&mut root).await < LARGE as u64);
    assert!(unless_quiet(Duration::from_secs(1), gone).await.is_none(), "the library has one, and nobody counts");
}

#[tokio::test]
async fn trailers_of_requests_count_while_the_member_has_not_read_them() {
    let (mut client, mut root) = (None, None);
    let (_member, _testbed) = deaf(&mut client, &mut root).await;
    let (mut client, mut root) = (client.expect("connected"), root.expect("connected"));
    let before = held(&mut root).await;
    let head = admin_block("POST", &[]);
    for _ in 0..REQUESTS {
        let stream = client.stream();
        let upload = [
            in_frames(0, stream, &head),
            encode(DATA, 0, stream, b"body"),
            in_frames(END_STREAM, stream, &[FIELD; FIELDS]),
        ];
        client.send_all(&upload.concat()).await;
    }
    becomes(WAIT, "they count", async || held(&mut root).await > before + REQUESTS as u64 * LEAST).await;
}

/// Large heads first, which fill the client's socket; then small answers with large trailers.
async fn trailing(mut frames: MemberFrames) -> io::Result<()> {
    for number in 0.. {
        let stream = loop {
            let frame = frames.read().await?;
            if frame.kind == HEADERS {
                break frame.stream;
            }
        };
        let answer = if number < enough() {
            in_frames(END_STREAM, stream, &[STATUS_200.to_vec(), large()].concat())
        } else {
            let head = encode(HEADERS, END_HEADERS, stream, STATUS_200);
            [head, in_frames(END_STREAM, stream, &[FIELD; FIELDS])].concat()
        };
        frames.send_all(&answer).await?;
    }
    Ok(())
}

#[tokio::test]
async fn trailers_of_answers_count_while_the_client_has_not_read_them() {
    let member = FrameMember::start(|_, frames| trailing(frames)).await;
    let testbed = Testbed::with(&member).await;
    let mut root = testbed.connect(Http::H2).await;
    let mut client = FrameClient::connect(&testbed).await;
    for _ in 0..enough() {
        client.request("GET", &proxied(CLUSTER, "/x"), true).await;
    }
    becomes(WAIT, "an answer waits", async || held(&mut root).await > LARGE as u64).await;
    let before = held(&mut root).await;
    for _ in 0..REQUESTS {
        client.request("GET", &proxied(CLUSTER, "/x"), true).await;
    }
    becomes(WAIT, "they count", async || held(&mut root).await > before + REQUESTS as u64 * LEAST).await;
}

#[tokio::test]
async fn trailers_have_as_many_lines_as_heads_may_have() {
    const TOO_MANY: usize = 8193;
    let member = FrameMember::start(|_, mut frames: MemberFrames| async move {
        loop {
            let frame = frames.read().await?;
            if frame.kind == HEADERS {
                let head = encode(HEADERS, END_HEADERS, frame.stream, STATUS_200);
                let trailers = in_frames(END_STREAM, frame.stream, &[FIELD; TOO_MANY]);
                frames.send_all(&[head, trailers].concat()).await?;
            }
        }
    })
    .await;
    let testbed = Testbed::with(&member).await;
    let answer = testbed.connect(Http::H2).await.try_call("GET", &proxied(CLUSTER, "/x"), &[], b"").await;
    assert!(answer.is_err(), "cut off, not passed on");

    let member = Http::H2.member().await;
    let testbed = Testbed::with(&member).await;
    let mut client = FrameClient::connect(&testbed).await;
    let stream = client.request("POST", &proxied(CLUSTER, "/x"), false).await;
    client.send_all(&encode(DATA, 0, stream, b"body")).await;
    client.send_all(&in_frames(END_STREAM, stream, &[FIELD; TOO_MANY])).await;
    let status = client.until("an answer", |frame| (frame.kind, frame.stream) == (DATA, stream)).await;
    let status = String::from_utf8_lossy(&status.payload).into_owned();
    assert!(status.contains("more than 8192 lines"), "{status}");
}

/// Three times its own length, while it is read: JSON, objects, and our words.
#[tokio::test]
async fn a_list_counts_for_whoever_asks_while_the_hub_answers() {
    let narrow = super::held::Narrow::start().await;
    let token = "x".repeat(20 << 10);
    for number in 0..100 {
        let secret = cluster(&format!("large-{number}"), &narrow.fixture.member);
        narrow.fixture.hub.put_secret(secret.token(&token));
    }
    let mut alice = narrow.fixture.connect(Http::H2, "alice").await;
    let target = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways";
    let message = alice.get(target).await.status_message(429, "TooManyRequests");
    assert!(message.contains("--max-held-bytes"), "{message}");
    narrow.assert_within_limit().await;
    // One of them is not too much.
    assert_eq!(alice.get(&format!("{target}/large-1")).await.status, 200);
}
