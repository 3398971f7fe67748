//! Bytes that wait for a slow client or member: beyond what the gateway may hold, the user with the
//! most gives way, and others do not notice.

use bytes::Bytes;
use h2::Reason;
use http::Method;
use kit::client::H2Options;
use kit::exposition;
use kit::hub::TokenUser;
use kit::member::{Reply, StreamSender, Streams};
use kit::wait::{WAIT, becomes, unless_quiet, within};
use std::time::Duration;
use system_tests::frames::FrameClient;
use system_tests::{ADMIN, CLUSTER, Connection, Failure, Http, proxied, socket_buffers};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::{FAST, Fixture, SLOW, WATCH};

/// Limit of these tests' gateways.
const LIMIT: u64 = 4 << 20;
/// Alice's streams: with a window each, far more than the limit.
const STREAMS: usize = 16;
/// A sender without room for this long counts as stuck.
const QUIET: Duration = Duration::from_millis(300);

/// A gateway that may hold little, and bob with a watch there and a connection for more.
pub(super) struct Narrow {
    pub(super) fixture: Fixture,
    bob: Connection,
    watches: Streams,
}

// === impl Narrow ===

impl Narrow {
    pub(super) async fn start() -> Self {
        Self::with(&[]).await
    }

    pub(super) async fn with(arguments: &[&str]) -> Self {
        let fixture = Fixture::with(&[&["--max-held-bytes=4Mi"], arguments].concat()).await;
        let watches = fixture.member.streams("/api/v1/pods");
        let bob = fixture.connect(Http::H2, "bob").await;
        Self { fixture, bob, watches }
    }

    /// Has `greed` done, during which bob's watch sees each of its events and his requests are
    /// answered.
    pub(super) async fn beside<T>(&mut self, greed: impl Future<Output = T>) -> T {
        let mut watch = self.bob.open_beside("GET", &proxied(CLUSTER, WATCH)).await.expect("a head");
        let (_, events) = self.watches.next().await;
        let bob = async {
            for number in 0.. {
                assert!(events.send(format!("{number}\n")).await, "bob's watch was ended");
                assert_eq!(watch.event().await, format!("{number}\n"));
                let answer = self.bob.get(&proxied(CLUSTER, FAST)).await;
                assert_eq!(answer.status, 200, "{}", answer.text());
            }
        };
        tokio::select! {
            done = greed => done,
            () = bob => unreachable!("without an end"),
        }
    }

    /// A number of the gateway's own.
    async fn metric(&self, name: &str) -> u64 {
        metric(&mut self.fixture.connect(Http::H2, "root").await, name).await
    }

    pub(super) async fn assert_within_limit(&self) {
        assert_eq!(self.metric("cluster_gateway_held_bytes_limit").await, LIMIT);
        let held = self.metric("cluster_gateway_held_bytes").await;
        assert!(held <= LIMIT, "{held} bytes are held");
        assert!(self.metric("cluster_gateway_sheds_total").await > 0);
    }
}

/// A number of the gateway's own.
pub(super) async fn metric(root: &mut Connection, name: &str) -> u64 {
    let metrics = root.get("/metrics").await.text();
    exposition::value(&metrics, name).unwrap_or_else(|| panic!("{name} is not among\n{metrics}"))
}

/// Sends until there is no room, or the stream was given up.
async fn feed(stream: StreamSender) -> StreamSender {
    let piece = Bytes::from(vec![b'x'; 16 << 10]);
    while unless_quiet(QUIET, stream.send(piece.clone())).await == Some(true) {}
    stream
}

#[tokio::test]
async fn answers_that_nobody_reads_give_way_to_others() {
    let mut narrow = Narrow::start().await;
    let mut streams = narrow.fixture.member.streams("/stream");
    // A window that takes next to nothing: the rest waits in the gateway.
    let options = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let client = narrow.fixture.testbed.client().h2_options(options);
    let greed = async {
        let alice = Connection::from(client.h2().await.expect("a connection")).bearer("alice");
        let mut answers = Vec::new();
        let mut feeding = JoinSet::new();
        for _ in 0..STREAMS {
            answers.push(alice.open_beside("GET", &proxied(CLUSTER, "/stream")).await.expect("a head"));
            feeding.spawn(feed(streams.next().await.1));
        }
        // Some were given up, the others are open and full.
        let senders = feeding.join_all().await;
        let kept = senders.iter().filter(|sender| !sender.is_gone()).count();
        assert!((1..STREAMS).contains(&kept), "{kept} of {STREAMS} streams are open");
        drop(senders);
        let mut reset = 0;
        for answer in answers {
            match answer.whole().await {
                Ok(_) => {}
                Err(Failure::H2(error)) if error.reason() == Some(Reason::ENHANCE_YOUR_CALM) => reset += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(kept + reset, STREAMS);
    };
    Box::pin(narrow.beside(greed)).await;
    narrow.assert_within_limit().await;
}

#[tokio::test]
async fn uploads_that_the_member_does_not_read_are_refused_with_a_reason() {
    let mut narrow = Narrow::start().await;
    let client = narrow.fixture.testbed.client();
    let greed = async {
        let alice = client.h2().await.expect("a connection");
        let headers = [("authorization", "Bearer alice")];
        let target = proxied(CLUSTER, SLOW);
        let mut refused = None;
        let mut uploads = Vec::new();
        for _ in 0..2 * STREAMS {
            let mut upload = alice.send(Method::POST, &target, &headers, false).await.expect("sent");
            let _ = upload.fill(Duration::from_millis(20)).await;
            uploads.push(upload);
        }
        for upload in uploads {
            // One of them is answered; those that stay are not.
            if let Some(answer) = unless_quiet(QUIET, upload.response()).await {
                refused = Some(answer.expect("a head"));
                break;
            }
        }
        refused.expect("an upload is refused")
    };
    let refused = Box::pin(narrow.beside(greed)).await;
    assert_eq!(refused.status(), 429);
    let body = refused.body.to_end().await.expect("a body");
    let message = String::from_utf8_lossy(&body).into_owned();
    assert!(message.contains("--max-held-bytes") && message.contains("TooManyRequests"), "{message}");
    narrow.assert_within_limit().await;
}

#[tokio::test]
async fn heads_of_strangers_that_are_not_whole_go_first() {
    let mut narrow = Narrow::start().await;
    let client = narrow.fixture.testbed.client();
    let greed = async {
        let mut strangers = Vec::new();
        for _ in 0..STREAMS {
            let mut stranger = client.h1().await.expect("a connection");
            let head = [b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec(), vec![b'x'; 700 << 10]].concat();
            // It may be ended in the middle.
            let _ = stranger.send(head).await;
            strangers.push(stranger);
        }
        let mut ended = 0;
        for stranger in &mut strangers {
            ended += usize::from(unless_quiet(QUIET, stranger.read_to_end()).await.is_some());
        }
        assert!((1..STREAMS).contains(&ended), "{ended} of {STREAMS} connections were ended");
    };
    Box::pin(narrow.beside(greed)).await;
    narrow.assert_within_limit().await;
}

#[tokio::test]
async fn a_reply_that_waits_is_no_reason_to_end_a_watch() {
    // Nothing is exceeded: no stream gives way.
    let mut narrow = Narrow::start().await;
    narrow.fixture.member.on("/one", |_| Reply::full(200, &[], vec![b'x'; 100 << 10]));
    let mut alice = narrow.fixture.connect(Http::H1, "alice").await;
    let answer = narrow.beside(async { alice.get(&proxied(CLUSTER, "/one")).await }).await;
    assert_eq!((answer.status, answer.body.len()), (200, 100 << 10));
    assert_eq!(narrow.metric("cluster_gateway_sheds_total").await, 0);
}

/// Their member has read who watches, and the gateway keeps no copy.
#[tokio::test]
async fn watches_that_have_begun_do_not_count_the_groups_of_their_caller() {
    const WATCHES: usize = 40;
    const GROUPS: usize = 500;
    let fixture = Fixture::with(&["--feature-gates=ClientIdentityPenetration=true"]).await;
    fixture.hub.add_token("alice", TokenUser::new("alice", &["g"; GROUPS]));
    let mut streams = fixture.member.streams("/api/v1/pods");
    let mut root = fixture.connect(Http::H2, "root").await;
    let alice = fixture.connect(Http::H2, "alice").await;
    let before = metric(&mut root, "cluster_gateway_held_bytes").await;
    let mut open = Vec::new();
    for _ in 0..WATCHES {
        let watch = alice.open_beside("GET", &proxied(CLUSTER, WATCH)).await.expect("a head");
        let (request, events) = streams.next().await;
        assert!(request.header_values("impersonate-group").len() >= GROUPS);
        open.push((watch, events));
    }
    // Less than the places of the groups in one table.
    let most = before + u64::try_from(WATCHES * GROUPS * 72).expect("small");
    becomes(WAIT, "they count little", async || metric(&mut root, "cluster_gateway_held_bytes").await < most).await;
}

/// Bytes that a member may write above an answer without a body.
const HEAD: usize = 200 << 10;

/// Has the member answer `/head` with a head like that.
fn large_heads(fixture: &Fixture) {
    fixture.member.on("/head", |_| Reply::full(200, &[("x-large", &"x".repeat(HEAD))], ""));
}

/// They are answered, and nothing is left to hold but what waits for the client's socket.
#[tokio::test]
async fn heads_of_answers_that_nobody_reads_give_way() {
    let narrow = Narrow::start().await;
    large_heads(&narrow.fixture);
    narrow.fixture.hub.add_token(ADMIN, TokenUser::new("greedy", &[]));
    let mut root = narrow.fixture.connect(Http::H2, "root").await;
    assert_eq!(metric(&mut root, "cluster_gateway_sheds_total").await, 0);
    let mut client = FrameClient::connect(&narrow.fixture.testbed).await;
    for _ in 0..(socket_buffers() + 4 * usize::try_from(LIMIT).expect("small")) / HEAD {
        client.request("GET", &proxied(CLUSTER, "/head"), true).await;
    }
    becomes(WAIT, "somebody gives way", async || metric(&mut root, "cluster_gateway_sheds_total").await > 0).await;
}

#[tokio::test]
async fn usual_heads_of_answers_that_nobody_reads_count() {
    const ANSWERS: usize = 150;
    const USUAL: usize = 7 << 10;
    let fixture = Fixture::with(&[]).await;
    fixture.hub.add_token(ADMIN, TokenUser::new("greedy", &[]));
    large_heads(&fixture);
    fixture.member.on("/usual", |_| Reply::full(200, &[("x-usual", &"x".repeat(USUAL))], "x"));
    let mut root = fixture.connect(Http::H2, "root").await;
    let mut client = FrameClient::connect(&fixture.testbed).await;
    // After these nothing goes out any more.
    for _ in 0..socket_buffers() / HEAD + 2 {
        client.request("GET", &proxied(CLUSTER, "/head"), true).await;
    }
    let mut before = 0;
    becomes(WAIT, "an answer waits", async || {
        before = metric(&mut root, "cluster_gateway_held_bytes").await;
        before > u64::try_from(HEAD).expect("small")
    })
    .await;
    for _ in 0..ANSWERS {
        client.request("GET", &proxied(CLUSTER, "/usual"), true).await;
    }
    let least = before + u64::try_from(ANSWERS * 2 * USUAL).expect("small");
    becomes(WAIT, "they count", async || metric(&mut root, "cluster_gateway_held_bytes").await > least).await;
}

#[tokio::test]
async fn connections_that_had_large_heads_are_not_idle_for_nothing() {
    let narrow = Narrow::start().await;
    let client = narrow.fixture.testbed.client();
    let (mut strangers, mut ended) = (Vec::new(), 0);
    for _ in 0..STREAMS {
        let mut stranger = client.h1().await.expect("a connection");
        let head = format!("GET /healthz HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(700 << 10));
        let answer = async {
            stranger.send(head).await.ok()?;
            stranger.head().await.ok()?;
            stranger.body().await.ok()
        };
        // The next may be the one that is too many.
        match answer.await {
            Some(_) => strangers.push(stranger),
            None => ended += 1,
        }
    }
    for stranger in &mut strangers {
        ended += usize::from(unless_quiet(QUIET, stranger.read_to_end()).await.is_some());
    }
    assert!((1..STREAMS).contains(&ended), "{ended} of {STREAMS} connections were ended");
}

/// All are answered, as soon as the client reads.
#[tokio::test]
async fn pipelined_requests_wait_for_a_client_that_reads_no_answers() {
    let fixture = Fixture::with(&[]).await;
    large_heads(&fixture);
    let most = 2 * socket_buffers() / HEAD;
    let request =
        format!("HEAD {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer alice\r\n\r\n", proxied(CLUSTER, "/head"));
    let (io, _) = fixture.testbed.client().h1().await.expect("a connection").into_parts();
    let (mut read, mut write) = tokio::io::split(io);
    let mut sent = 0;
    loop {
        // One by one: bytes from the client make the gateway check again.
        write.write_all(request.as_bytes()).await.expect("sent");
        write.flush().await.expect("sent");
        sent += 1;
        if unless_quiet(QUIET, fixture.member.next_request()).await.is_none() {
            break;
        }
        assert!(sent < most, "{sent} answers of {HEAD} bytes wait");
    }
    let (mut answers, mut piece, mut rest) = (0, vec![0; 64 << 10], Vec::new());
    while answers < sent {
        let length = within(WAIT, "more of the answers", read.read(&mut piece)).await.expect("bytes");
        assert!(length > 0, "the connection ended after {answers} answers");
        rest.extend_from_slice(&piece[..length]);
        while let Some(end) = rest.windows(4).position(|four| four == b"\r\n\r\n") {
            assert!(rest.starts_with(b"HTTP/1.1 200"));
            rest.drain(..end + 4);
            answers += 1;
        }
    }
}
