//! Closes connections without losing the last bytes sent.
//!
//! A TCP socket that is closed with unread bytes is reset, and a reset may overtake data that the
//! peer has not read yet: the last response before a shutdown, or the refusal of an upload that is
//! still arriving. So a connection that we end is first shut down for writing, and then read for a
//! moment until the peer has closed too. (RFC 9112 §9.6; Go's servers also wait for a second.)

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::seal::Seal;

/// How long a peer may take to close after us.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// Most bytes that it may still send meanwhile.
const MOST: usize = 4 * 1024 * 1024;

/// A stream whose shutdown waits for the peer's.
pub struct Linger<T> {
    stream: T,
    state: Phase,
}

enum Phase {
    Open,
    Waiting { until: Pin<Box<Sleep>>, read: usize },
    Closed,
}

// === impl Linger ===

impl<T> Linger<T> {
    pub fn new(stream: T) -> Self {
        Self { stream, state: Phase::Open }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Linger<T> {
    crate::forward!(stream: poll_read);
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Linger<T> {
    crate::forward!(stream: poll_write, poll_write_vectored, is_write_vectored, poll_flush);

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if matches!(this.state, Phase::Open) {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
            this.state = Phase::Waiting { until: Box::pin(sleep(PATIENCE)), read: 0 };
        }
        if let Phase::Waiting { until, read } = &mut this.state {
            // The peer closed, failed, sent too much, or took too long: in each case there is
            // nothing left to wait for.
            if until.as_mut().poll(cx).is_pending() {
                ready!(poll_discard(&mut this.stream, cx, read));
            }
            this.state = Phase::Closed;
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: Seal> Seal for Linger<T> {
    fn seal(&mut self, parts: [&[u8]; 2]) -> io::Result<usize> {
        self.stream.seal(parts)
    }
}

fn poll_discard<T: AsyncRead + Unpin>(stream: &mut T, cx: &mut Context<'_>, read: &mut usize) -> Poll<()> {
    let mut space = [MaybeUninit::uninit(); 4096];
    while *read < MOST {
        let mut buffer = ReadBuf::uninit(&mut space);
        match ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer)) {
            Ok(()) if !buffer.filled().is_empty() => *read += buffer.filled().len(),
            Ok(()) | Err(_) => break,
        }
    }
    Poll::Ready(())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_closes_is_waited_for_and_no_longer() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = Linger::new(ours);
        ours.write_all(b"last words").await.unwrap();
        let peer = tokio::spawn(async move {
            let mut heard = Vec::new();
            theirs.read_to_end(&mut heard).await.unwrap();
            theirs.write_all(&[0; 1000]).await.unwrap();
            heard
        });
        let started = Instant::now();
        ours.shutdown().await.unwrap();
        assert!(started.elapsed() < PATIENCE);
        assert_eq!(peer.await.unwrap(), b"last words");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_closes_is_left_behind() {
        let (ours, _theirs) = duplex(64);
        let started = Instant::now();
        Linger::new(ours).shutdown().await.unwrap();
        assert_eq!(started.elapsed(), PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_never_stops_sending_is_left_behind_too() {
        let (ours, mut theirs) = duplex(64 * 1024);
        tokio::spawn(async move { while theirs.write_all(&[0; 4096]).await.is_ok() {} });
        Linger::new(ours).shutdown().await.unwrap();
    }
}
