//! The requests of each attacker, in a loop.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use kit::client::{BoxedIo, Client, H2Connection, H2Options};
use kit::frames::{DATA, END_HEADERS, END_STREAM, Frames, HEADERS, RST_STREAM, encode, in_frames, literals, request};
use kit::pki::ALPN_H2;
use kit::process::LoggedProcess;
use kit::wait::{WAIT, unless_quiet};
use tokio::time::{sleep, timeout};

use super::{DEAF, MEMBER};

/// How long an attacker keeps its streams before it begins again.
pub const KEEP: Duration = Duration::from_secs(2);
/// Pause before it begins again.
pub const PAUSE: Duration = Duration::from_millis(100);
/// Streams of one connection.
const STREAMS: usize = 200;
const QUIET: Duration = Duration::from_millis(200);
/// `:method: GET`, `:scheme: https`, `:path: /`, `:authority: a`.
const REQUEST: [u8; 6] = [0x82, 0x87, 0x84, 0x41, 1, b'a'];
/// A field of one byte (`accept-charset`, RFC 7541 appendix A).
const FIELD: u8 = 0x8f;
/// Size of a frame's payload.
const FRAME: usize = 16 << 10;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// A connection with very small windows of its streams.
async fn narrow(client: Client) -> Option<H2Connection> {
    client.h2_options(H2Options { stream_window: 1 << 10, ..H2Options::default() }).h2().await.ok()
}

/// Opens so many connections that send `bytes`, all at once, and stay for a while: `process` finds
/// them all there when it goes on.
pub async fn at_once(client: &Client, process: &LoggedProcess, connections: usize, bytes: &[u8]) {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(frames(client).await.expect("a connection"));
    }
    process.signal("STOP");
    let go_on = async {
        sleep(KEEP / 4).await;
        process.signal("CONT");
    };
    let stay = open.iter_mut().map(|frames| send_and_stay(frames, bytes, KEEP));
    futures_util::join!(futures_util::future::join_all(stay), go_on);
}

async fn frames(client: &Client) -> Option<Frames<BoxedIo>> {
    Frames::client(client.raw(ALPN_H2).await.ok()?).await.ok()
}

/// Sends, and keeps the connection for as long as it lasts.
async fn send_and_stay(frames: &mut Frames<BoxedIo>, bytes: &[u8], stay: Duration) {
    if timeout(WAIT, frames.send_all(bytes)).await.is_ok_and(|sent| sent.is_ok()) {
        let _ = timeout(stay, frames.ignore()).await;
    }
}

/// The header block of `user`'s request.
fn block(user: &str, method: &str, target: &str) -> Vec<u8> {
    request(method, target, &[("authorization", &format!("Bearer {user}"))])
}

/// Unread answers over HTTP/2: to requests that are no watches, and to watches.
pub async fn unread_answers(client: Client, user: &'static str, target: String) {
    let Some(connection) = narrow(client).await else { return };
    let authorization = format!("Bearer {user}");
    let headers = [("authorization", authorization.as_str())];
    loop {
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let stream = connection.send(Method::GET, &target, &headers, true).await;
            let Ok(stream) = stream else { return };
            open.push(stream);
        }
        sleep(KEEP).await;
    }
}

/// The same over HTTP/1.1: a connection each.
pub async fn unread_streams(client: Client) {
    let mut open = Vec::new();
    for _ in 0..STREAMS / 4 {
        let Ok(mut connection) = client.h1().await else { break };
        let headers = [("authorization", "Bearer streams")];
        let _ = connection.request("GET", &format!("{MEMBER}/endless"), &headers, b"").await;
        open.push(connection);
    }
    sleep(3 * KEEP).await;
}

/// Uploads that the member does not read, in short frames and in long ones.
pub async fn unread_uploads(client: Client) {
    let Ok(connection) = client.h2().await else { return };
    let headers = [("authorization", "Bearer uploads")];
    loop {
        let mut open = Vec::new();
        // Its windows, the gateway's and the member's, are filled.
        for _ in 0..STREAMS / 4 {
            let upload = connection.send(Method::POST, &format!("{MEMBER}/never"), &headers, false).await;
            let Ok(mut upload) = upload else { return };
            for _ in 0..50 {
                let Some(Ok(())) = unless_quiet(QUIET, upload.send(&b"0123456789"[..], false)).await else { break };
            }
            let _ = upload.fill(QUIET / 10).await;
            open.push(upload);
        }
        sleep(KEEP).await;
    }
}

/// Uploads of one byte a frame that the member does not read.
pub async fn bytewise_uploads(client: Client) {
    const BYTES: usize = 60_000;
    let Some(mut frames) = frames(&client).await else { return };
    let head = block("bytewise", "POST", &format!("{MEMBER}/never"));
    for stream in (1..).step_by(2).take(16) {
        let upload = [in_frames(0, stream, &head), encode(DATA, 0, stream, b"x").repeat(BYTES)].concat();
        if !timeout(WAIT, frames.send_all(&upload)).await.is_ok_and(|sent| sent.is_ok()) {
            return;
        }
    }
    let _ = timeout(KEEP, frames.ignore()).await;
}

/// Requests with large heads that the member does not answer.
pub async fn large_heads(client: Client) {
    let Ok(connection) = client.h2().await else { return };
    let value = "x".repeat(300 << 10);
    let headers = [("authorization", "Bearer heads"), ("x-large", value.as_str())];
    loop {
        let mut open = Vec::new();
        for _ in 0..STREAMS {
            let stream = connection.send(Method::GET, &format!("{MEMBER}/never"), &headers, true).await;
            let Ok(stream) = stream else { return };
            open.push(stream);
        }
        sleep(KEEP).await;
    }
}

/// Heads of the largest permitted size, without their last frame.
pub async fn largest_heads(client: Client) {
    let Some(mut frames) = frames(&client).await else { return };
    let line = literals(&[("x-large", &"x".repeat(1000 << 10))]);
    let head = [block("largest", "GET", &format!("{MEMBER}/never")), line].concat();
    for stream in (1..).step_by(2).take(16) {
        if !timeout(WAIT, frames.send_all(&in_frames(END_STREAM, stream, &head))).await.is_ok_and(|sent| sent.is_ok()) {
            return;
        }
    }
    let mut begun = in_frames(END_STREAM, 33, &head);
    begun.truncate(begun.len() - FRAME);
    send_and_stay(&mut frames, &begun, KEEP).await;
}

/// Heads of a field for each byte, as many as a socket takes at once. Without any credential.
pub fn heads_of_fields() -> Vec<u8> {
    let block = [&REQUEST[..], &vec![FIELD; FRAME - REQUEST.len()]].concat();
    let head = |stream| encode(HEADERS, END_HEADERS, stream, &block);
    (1..).step_by(2).take(10).flat_map(head).collect()
}

/// Frames of a byte, as many as one turn reads, for which the library keeps room. Without any
/// credential.
pub fn frames_of_a_byte() -> Vec<u8> {
    let lines = [(":method", "GET"), (":scheme", "https"), (":authority", "a"), (":path", "/healthz")];
    [in_frames(0, 1, &literals(&lines)), encode(DATA, 0, 1, b"x").repeat(4096)].concat()
}

/// Says `bytes` on a connection of its own.
pub async fn say(client: Client, bytes: Arc<[u8]>) {
    let Some(mut frames) = frames(&client).await else { return };
    send_and_stay(&mut frames, &bytes, 3 * KEEP).await;
    // It is to make the gateway take memory, not all of its time.
    sleep(KEEP).await;
}

/// Requests with as many fields as are taken, given up at once, to a member that reads nothing.
pub async fn cancelled_heads(client: Client) {
    const FIELDS: usize = 8150;
    let Some(mut frames) = frames(&client).await else { return };
    let head = block("cancelled", "GET", &format!("{DEAF}/x"));
    // Fills the member's socket.
    let large = [&head[..], &literals(&[("x-large", &"x".repeat(400 << 10))])].concat();
    let many = [&head[..], &[FIELD; FIELDS]].concat();
    let mut streams = (1..).step_by(2);
    for stream in streams.by_ref().take(30) {
        if frames.send_all(&in_frames(END_STREAM, stream, &large)).await.is_err() {
            return;
        }
    }
    for stream in streams.take(2000) {
        let cancelled = [in_frames(END_STREAM, stream, &many), encode(RST_STREAM, 0, stream, &CANCEL)].concat();
        if !timeout(WAIT, frames.send_all(&cancelled)).await.is_ok_and(|sent| sent.is_ok()) {
            return;
        }
    }
    let _ = timeout(KEEP, frames.ignore()).await;
}

/// A head that is not finished, an idle connection, or a preface and nothing else.
pub async fn stranger(client: Client, number: usize) {
    let until_closed = async {
        match number % 3 {
            0 => {
                let Ok(mut connection) = client.h1().await else { return };
                let head = [b"GET / HTTP/1.1\r\nHost: a\r\nX: ".to_vec(), vec![b'x'; 700 << 10]].concat();
                if connection.send(head).await.is_ok() {
                    let _ = connection.read_to_end().await;
                }
            }
            1 => {
                let Ok(mut connection) = client.h1().await else { return };
                let _ = connection.read_to_end().await;
            }
            _ => {
                let Ok(connection) = client.h2().await else { return };
                let _ = connection.closed().await;
            }
        }
    };
    let _ = timeout(WAIT, until_closed).await;
    // Its handshakes are to cost the machine less than everything else: a thousand of them.
    sleep(5 * KEEP).await;
}

/// Data of the member for clients that do not read.
pub async fn feed(stream: kit::member::StreamSender) {
    let piece = Bytes::from(vec![b'x'; 64 << 10]);
    while !stream.is_gone() {
        let _ = unless_quiet(QUIET, stream.send(piece.clone())).await;
    }
}
