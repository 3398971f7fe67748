//! A client that sends broken heads, each of which must be answered with `RST_STREAM`; and one that
//! sends no preface.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::coop::poll_proceed;
use tokio::time::timeout;

use super::*;

/// Size of the client's socket buffer.
const ROOM: usize = 64 * 1024;
/// A head with two methods.
const BROKEN: [u8; 2] = [0x82, 0x82];
const FRAME: usize = 9 + BROKEN.len();
const PING: u8 = 6;

struct Client {
    requests: WriteHalf<DuplexStream>,
    /// Bytes that could not be sent.
    unsent: Bytes,
    streams: u32,
}

// === impl Client ===

impl Client {
    /// A connection that is served like every client's, and its output.
    async fn connect(many_users: bool) -> (Self, ReadHalf<DuplexStream>) {
        let (ours, theirs) = duplex(ROOM);
        let (io, outlet) = gather(Inbound::of_client(ours, Marks::default()));
        let handshake = limits::http2(100, many_users).handshake::<_, Bytes>(io);
        let serving = Box::pin(async move {
            let mut connection = handshake.await?;
            while let Some(request) = connection.accept().await {
                request?;
            }
            Ok::<_, h2::Error>(())
        });
        tokio::spawn(outlet.drive(serving).reading_at_most(Limits::TURN));
        let (answers, mut requests) = split(theirs);
        requests.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        (Self { requests, unsent: Bytes::new(), streams: 0 }, answers)
    }

    /// Sends broken heads. False once they cannot be sent any more.
    async fn send(&mut self, heads: u32) -> bool {
        let mut frames = self.unsent.to_vec();
        for stream in self.streams..self.streams + heads {
            frames.extend_from_slice(&[0, 0, 2, 1, 5]);
            frames.extend_from_slice(&(2 * stream + 1).to_be_bytes());
            frames.extend_from_slice(&BROKEN);
        }
        self.streams += heads;
        self.unsent = frames.into();
        let sent = timeout(Duration::from_secs(1), self.requests.write_all_buf(&mut self.unsent)).await;
        matches!(sent, Ok(Ok(())))
    }
}

/// Reads until the connection ends, or until the answer to a PING.
async fn read_to_pong(mut answers: ReadHalf<DuplexStream>) -> bool {
    let mut head = [0; 9];
    while answers.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        if tokio::io::copy(&mut (&mut answers).take(length.into()), &mut tokio::io::sink()).await.is_err() {
            return false;
        }
        if head[3] == PING {
            return true;
        }
    }
    false
}

/// h2 would keep all the answers.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_ends_its_connection() {
    let (mut client, _answers) = Client::connect(false).await;
    while client.streams < 1_000_000 && client.send(100).await {}
    let most = Limits::LOCAL_RESETS + 3 * ROOM / FRAME;
    assert!((client.streams as usize) < most, "{} heads were taken", client.streams);
}

#[tokio::test(start_paused = true)]
async fn a_hub_has_any_number_of_frames_answered_by_resets() {
    let (mut hub, answers) = Client::connect(true).await;
    let pong = tokio::spawn(read_to_pong(answers));
    // More than the largest limit that h2 ever had here.
    for _ in 0..11 {
        assert!(hub.send(100_000).await, "ended after {} heads", hub.streams);
    }
    let ping = [&[0, 0, 8, PING, 0, 0, 0, 0, 0][..], &[0; 8]].concat();
    hub.requests.write_all(&ping).await.unwrap();
    assert!(pong.await.unwrap(), "the connection goes on");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_stops_sending_gets_no_more_time_for_its_preface() {
    let received = ReceivedBytes::default();
    let mut silence = pin!(silence(&received));
    for (wait, is_over) in [(Duration::ZERO, false), (Limits::PREFACE + Duration::from_secs(1), true)] {
        tokio::time::advance(wait).await;
        let polled = poll_fn(|cx| {
            // As a connection does that reads until the budget is used up.
            while poll_proceed(cx).map(|budget| budget.made_progress()).is_ready() {}
            Poll::Ready(silence.as_mut().poll(cx))
        });
        assert_eq!(polled.await.is_ready(), is_over);
    }
}
