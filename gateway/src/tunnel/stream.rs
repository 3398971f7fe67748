//! A tunnelled stream whose errors name the tunnel.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use net::words;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::CancellationToken;
use tunnel::{Gauge, Stream, Timing};

use super::reached::{Reached, Reaching};
use crate::holding::Backlog;

pub struct Tunnelled {
    stream: Stream,
    /// The server that opened it, as messages name it.
    via: Arc<str>,
    /// Set if this process lists the stream among its own.
    gauge: Option<Arc<Gauge>>,
    _reaching: Option<Reaching>,
}

// === impl Tunnelled ===

impl Tunnelled {
    pub fn new(stream: Stream, via: Arc<str>) -> Self {
        Self { stream, via, gauge: None, _reaching: None }
    }

    #[must_use]
    pub fn counted(self, gauge: Arc<Gauge>) -> Self {
        Self { gauge: Some(gauge), ..self }
    }

    /// Counts as a stream of the cluster that is `reached`.
    #[must_use]
    pub fn reaching(self, reached: &Arc<Reached>) -> Self {
        Self { _reaching: Some(reached.begin()), ..self }
    }

    /// Counts the stream's unread bytes in `backlog`.
    #[must_use]
    pub fn observed_by(mut self, backlog: Option<&Arc<Backlog>>) -> Self {
        if let Some(backlog) = backlog {
            self.stream = self.stream.observed_by(Arc::<Backlog>::clone(backlog));
        }
        self
    }

    /// How long the hops took to open the stream, as they report it.
    pub fn timing(&self) -> Timing {
        self.stream.timing()
    }

    /// Cancelled when the tunnel-server or the agent is leaving.
    pub fn leaving(&self) -> Option<CancellationToken> {
        self.stream.leaving()
    }

    /// Checks whether an operator has ended the stream from this process's list.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let outcome = self.gauge.as_ref().map_or(Ok(()), |gauge| gauge.check(cx));
        if outcome.is_err() {
            self.stream.reset();
        }
        self.explain(outcome)
    }

    fn explain<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        outcome.map_err(|error| {
            io::Error::new(error.kind(), format!("the tunnel through {} broke: {}", self.via, words::io(&error)))
        })
    }
}

impl AsyncRead for Tunnelled {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        let before = buf.filled().len();
        let outcome = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        if let Some(gauge) = &self.gauge {
            gauge.back.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        }
        Poll::Ready(self.explain(outcome))
    }
}

impl AsyncWrite for Tunnelled {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        let outcome = ready!(Pin::new(&mut self.stream).poll_write(cx, buf));
        if let (Some(gauge), Ok(written)) = (&self.gauge, &outcome) {
            gauge.forth.fetch_add(*written as u64, Ordering::Relaxed);
        }
        Poll::Ready(self.explain(outcome))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_flush(cx));
        Poll::Ready(self.explain(outcome))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = ready!(Pin::new(&mut self.stream).poll_shutdown(cx));
        Poll::Ready(self.explain(outcome))
    }
}
