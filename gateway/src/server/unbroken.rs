//! hyper's HTTP/2 connection without a way for one request to end it.
//!
//! At a CONNECT with a length hyper resets the stream and *returns from the connection* as if that were over (`poll_server` in
//! `proto/h2/server.rs`), which ends the streams of all of a hub's users. It stays as it was, so it is polled on.

use std::pin::Pin;
use std::task::{Context, Poll};

use net::gather::Driven;
use net::seal::Seal;
use tokio::io::AsyncWrite;

/// A connection ends by shutting its stream down, or with an error. Anything else is not its end.
pub struct Unbroken<C, T>(Driven<C, T>);

/// More of them in one turn cannot be: they wait beside the requests that were taken back, or are under way.
const MOST: usize = 16 * 1024;

// === impl Unbroken ===

impl<C, T> Unbroken<C, T> {
    pub fn new(driven: Driven<C, T>) -> Self {
        Self(driven)
    }

    pub fn connection(&mut self) -> &mut C {
        self.0.connection()
    }
}

impl<C, T> Future for Unbroken<C, T>
where
    C: Future<Output = hyper::Result<()>> + Unpin,
    T: AsyncWrite + Seal + Unpin,
{
    type Output = hyper::Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut end = Pin::new(&mut self.0).poll(cx);
        for _ in 0..MOST {
            if !matches!(end, Poll::Ready(Ok(()))) || self.0.is_shut() {
                break;
            }
            end = Pin::new(&mut self.0).poll(cx);
        }
        end
    }
}
