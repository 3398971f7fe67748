//! Clients that stop reading hold back their own answers and nothing else, also on the connections
//! they share with others.

use bytes::Bytes;
use kit::client::H2Options;
use kit::member::{StreamSender, Streams};
use kit::wait::unless_quiet;
use system_tests::prelude::*;
use system_tests::{Streamed, socket_buffers};
use tokio::task::JoinSet;

use super::{QUIET, assert_others_are_served};

across_versions!(unread_large_answers_hold_nobody_back);
across_http!(unread_floods_of_small_frames_hold_nobody_back);

/// Clients that read nothing.
const STALLED: usize = 10;
/// Bytes of a log line: many of them are many HTTP/2 frames.
const LINE: usize = 100;
/// Lines per stream: a hundred thousand frames in all, far beyond what HTTP/2 libraries take for an
/// attack.
const LINES: usize = 10_000;

/// Most bytes that may wait on the way to one client that reads nothing.
fn held_at_most(versions: Versions) -> usize {
    match (versions.client, versions.member) {
        // The client's window of 1 MiB, ours towards the member of 1 MiB, our send buffer; and the
        // scripted member's own queue and buffers, about 1.5 MiB.
        (Http::H2, Http::H2) => 4 << 20,
        // Where HTTP/1.1 is spoken, the kernel's buffers of both connections too.
        _ => (4 << 20) + 2 * socket_buffers(),
    }
}

/// Sends pieces until there has been no room for a while or `limit` bytes are gone; returns how
/// many are.
async fn feed(stream: &StreamSender, piece: usize, limit: usize) -> usize {
    let piece = Bytes::from(vec![b'x'; piece]);
    let mut sent = 0;
    while sent < limit {
        match unless_quiet(QUIET, stream.send(piece.clone())).await {
            Some(taken) => assert!(taken, "the stream was given up"),
            None => break,
        }
        sent += piece.len();
    }
    sent
}

/// Unread answers that are still being sent.
struct Unread {
    /// The connection of all of them, if they share one.
    shared: Option<Connection>,
    answers: Vec<Streamed<'static>>,
    /// Held, so that they stay open.
    alone: Vec<Connection>,
}

impl Unread {
    /// Starts them on one HTTP/2 connection.
    async fn together(connection: Connection) -> Self {
        let mut answers = Vec::new();
        for _ in 0..STALLED {
            answers.push(connection.open_beside("GET", &proxied(CLUSTER, "/stream")).await.expect("a head"));
        }
        Self { shared: Some(connection), answers, alone: Vec::new() }
    }

    /// Starts them on an HTTP/1.1 connection each.
    async fn apart(testbed: &Testbed) -> Self {
        let mut alone = Vec::new();
        for _ in 0..STALLED {
            let mut connection = testbed.connect(Http::H1).await;
            connection.open("GET", &proxied(CLUSTER, "/stream"), &[]).await.expect("a head");
            alone.push(connection);
        }
        Self { shared: None, answers: Vec::new(), alone }
    }
}

/// Feeds all of them at once; returns how many bytes of each were sent, and the senders that keep
/// them open.
async fn feed_all(streams: &mut Streams, piece: usize, limit: usize) -> (Vec<usize>, Vec<StreamSender>) {
    let mut feeding = JoinSet::new();
    for _ in 0..STALLED {
        let (_, stream) = streams.next().await;
        feeding.spawn(async move { (feed(&stream, piece, limit).await, stream) });
    }
    feeding.join_all().await.into_iter().unzip()
}

async fn unread_large_answers_hold_nobody_back(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let mut streams = member.streams("/stream");
    let testbed = Testbed::with(&member).await;
    let unread = match versions.client {
        Http::H1 => Unread::apart(&testbed).await,
        Http::H2 => Unread::together(testbed.connect(Http::H2).await).await,
    };
    let (sent, _open) = feed_all(&mut streams, 64 << 10, 2 * held_at_most(versions)).await;
    for sent in sent {
        assert!(
            (64 << 10..held_at_most(versions)).contains(&sent),
            "{sent} bytes wait for a client that reads nothing"
        );
    }
    assert_others_are_served(&testbed, unread.shared.as_ref()).await;
    drop(unread.alone);
}

async fn unread_floods_of_small_frames_hold_nobody_back(member: Http) {
    let member = member.member().await;
    member.on("/small", |_| Reply::json(200, &json!({})));
    let mut streams = member.streams("/stream");
    let testbed = Testbed::with(&member).await;
    // The client takes few, so the others wait in the gateway.
    let options = H2Options { stream_window: 16 << 10, ..H2Options::default() };
    let connection = testbed.client().h2_options(options).h2().await.expect("a connection");
    let unread = Unread::together(Connection::from(connection).bearer(ADMIN)).await;
    let (sent, open) = feed_all(&mut streams, LINE, LINE * LINES).await;
    assert_others_are_served(&testbed, unread.shared.as_ref()).await;

    // A client that reads in the end gets everything.
    drop(open);
    let total: usize = sent.iter().sum();
    assert!(total > STALLED * LINE * LINES / 2, "{total} bytes are no flood");
    let mut received = 0;
    for answer in unread.answers {
        received += answer.whole().await.expect("a clean end").body.len();
    }
    // A piece whose sending was given up may still have been taken.
    assert!((total..=total + STALLED * LINE).contains(&received), "{received} of {total} bytes arrived");
}
