//! Twenty megabytes up and, at the same time, down: every byte arrives, in order, once.

use std::sync::OnceLock;

use bytes::Bytes;
use http::Method;
use kit::client::H1Connection;
use kit::member::{Ending, Reply};
use system_tests::{ADMIN, CLUSTER, Http, Testbed, Versions, across_versions, proxied};
use tokio::io::AsyncWriteExt as _;

across_versions!(twenty_megabytes_come_back_as_they_were_sent);

/// Bytes sent each way: many times what windows and buffers hold.
const TOTAL: usize = 20_000_000;
/// Bytes after which the pattern repeats: a prime, so that no frame, chunk or buffer size divides
/// it.
const PERIOD: usize = 1_000_003;
/// Bytes of one piece sent.
const PIECE: usize = 256 << 10;

/// What is sent and expected, compared in place: a shifted, doubled or lost piece never fits.
#[derive(Default)]
struct Expected(usize);

fn pattern() -> &'static Bytes {
    static PATTERN: OnceLock<Bytes> = OnceLock::new();
    PATTERN.get_or_init(|| {
        // xorshift (Marsaglia): no two stretches of it look alike.
        let mut state = 0x2545_f491_u32;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state.to_le_bytes()[1]
        };
        let period: Vec<u8> = (0..PERIOD).map(|_| next()).collect();
        [&period[..], &period[..PIECE]].concat().into()
    })
}

/// All pieces to send, in order.
fn pieces() -> impl Iterator<Item = Bytes> {
    (0..TOTAL).step_by(PIECE).map(|start| {
        let offset = start % PERIOD;
        pattern().slice(offset..offset + PIECE.min(TOTAL - start))
    })
}

// === impl Expected ===

impl Expected {
    fn take(&mut self, mut received: &[u8]) {
        while !received.is_empty() {
            let (offset, length) = (self.0 % PERIOD, received.len().min(PIECE));
            let (piece, rest) = received.split_at(length);
            assert!(pattern()[offset..offset + length] == *piece, "other bytes than sent from {} on", self.0);
            self.0 += length;
            received = rest;
        }
    }
}

async fn twenty_megabytes_come_back_as_they_were_sent(versions: Versions) {
    let member = versions.member.member().await;
    member.on("/echo", |_| Reply::Echo);
    let testbed = Testbed::with(&member).await;
    let received = match versions.client {
        Http::H1 => echo_h1(&testbed).await,
        Http::H2 => echo_h2(&testbed).await,
    };
    assert_eq!(received, TOTAL);
    let request = member.next_request().await;
    assert_eq!((request.body_bytes(), request.ended().await.0), (TOTAL as u64, Ending::Completed));
}

async fn echo_h1(testbed: &Testbed) -> usize {
    let (io, _) = testbed.client().h1().await.expect("a connection").into_parts();
    let (reader, mut writer) = tokio::io::split(io);
    let sending = async {
        let target = proxied(CLUSTER, "/echo");
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ADMIN}\r\nContent-Length: {TOTAL}\r\n\r\n"
        );
        writer.write_all(head.as_bytes()).await.expect("taken");
        for piece in pieces() {
            writer.write_all(&piece).await.expect("taken");
        }
        writer.flush().await.expect("taken");
    };
    let receiving = async {
        let mut connection = H1Connection::over(Box::new(tokio::io::join(reader, tokio::io::sink())));
        assert_eq!(connection.head().await.expect("an answer").status, 200);
        let mut expected = Expected::default();
        while let Some(chunk) = connection.chunk().await.expect("a whole answer") {
            expected.take(&chunk);
        }
        expected.0
    };
    tokio::join!(sending, receiving).1
}

async fn echo_h2(testbed: &Testbed) -> usize {
    let connection = testbed.client().h2().await.expect("a connection");
    let bearer = format!("Bearer {ADMIN}");
    let headers = [("authorization", bearer.as_str())];
    let exchange = connection.send(Method::POST, &proxied(CLUSTER, "/echo"), &headers, false).await.expect("sent");
    let answer = exchange.response().await.expect("the head comes before the body");
    let (mut upload, mut body) = (answer.upload, answer.body);
    let sending = async {
        for piece in pieces() {
            upload.send(piece, false).await.expect("taken");
        }
        upload.send(Bytes::new(), true).await.expect("taken");
    };
    let receiving = async {
        let mut expected = Expected::default();
        while let Some(chunk) = body.chunk().await {
            expected.take(&chunk.expect("a whole answer"));
        }
        expected.0
    };
    tokio::join!(sending, receiving).1
}
