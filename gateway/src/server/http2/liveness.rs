//! Checks that a client is still there: sends a PING after silence (RFC 9113 §6.7).

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use h2::{Ping, PingPong};
use tokio::time::{Instant, Sleep, sleep};

use crate::server::limits::Limits;

/// Polled together with its connection.
pub struct Liveness {
    pings: PingPong,
    received: ReceivedBytes,
    /// Bytes received at the last check.
    last: u64,
    timer: Pin<Box<Sleep>>,
    asked: bool,
}

// === impl Liveness ===

impl Liveness {
    pub fn new(pings: PingPong, received: ReceivedBytes) -> Self {
        Self { pings, received, last: 0, timer: Box::pin(sleep(Limits::PING_AFTER)), asked: false }
    }

    /// Completes when the client has not answered a PING in time.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // An error means that the connection has ended, which its own poll shows.
            if self.asked && self.pings.poll_pong(cx).is_ready() {
                self.asked = false;
                self.timer.as_mut().reset(Instant::now() + Limits::PING_AFTER);
            }
            ready!(self.timer.as_mut().poll(cx));
            if self.asked {
                return Poll::Ready(());
            }
            let last = std::mem::replace(&mut self.last, self.received.bytes());
            self.asked = last == self.last && self.pings.send_ping(Ping::opaque()).is_ok();
            let wait = if self.asked { Limits::PONG_WITHIN } else { Limits::PING_AFTER };
            self.timer.as_mut().reset(Instant::now() + wait);
        }
    }
}

/// The number of bytes that a client has sent.
#[derive(Clone, Default)]
pub struct ReceivedBytes(Arc<AtomicU64>);

// === impl ReceivedBytes ===

impl ReceivedBytes {
    /// RFC 9113 §3.4.
    const PREFACE: u64 = 24;

    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn has_preface(&self) -> bool {
        self.bytes() >= Self::PREFACE
    }
}

impl net::observed::ActivityObserver for ReceivedBytes {
    fn on_read(&mut self, bytes: &[u8]) {
        // Only the connection's task writes.
        self.0.store(self.bytes() + bytes.len() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use bytes::Bytes;
    use net::observed::Observed;
    use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Serves until the client is given up. Returns how long that took.
    async fn served(io: DuplexStream) -> std::time::Duration {
        let received = ReceivedBytes::default();
        let io = Observed::new(io, received.clone());
        let mut connection = h2::server::Builder::new().handshake::<_, Bytes>(io).await.unwrap();
        let started = Instant::now();
        let mut liveness = Liveness::new(connection.ping_pong().unwrap(), received);
        poll_fn(|cx| {
            assert!(connection.poll_accept(cx).is_pending(), "the client ended the connection");
            liveness.poll(cx)
        })
        .await;
        started.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_answers_nothing_is_given_up() {
        let (mut client, io) = duplex(1 << 16);
        client.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let took = served(io).await;
        let most = Limits::PING_AFTER * 2 + Limits::PONG_WITHIN;
        let least = Limits::PING_AFTER + Limits::PONG_WITHIN;
        assert!((least..=most + std::time::Duration::from_secs(1)).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_answers_pings_stays() {
        let (client, io) = duplex(1 << 16);
        let (requests, connection) = h2::client::handshake(client).await.unwrap();
        tokio::spawn(connection);
        let given_up = timeout(Limits::PING_AFTER * 20, served(io)).await;
        assert!(given_up.is_err(), "{given_up:?}");
        drop(requests);
    }
}
