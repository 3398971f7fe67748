//! The source of a body: one that has arrived whole, or one that is read piece by piece.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::RecvStream;
use http::HeaderMap;

use super::collector::Collector;
use super::{Reader, release};
use crate::holding::Account;

/// The source of a body.
pub enum Source {
    /// The body has arrived, in one frame.
    Whole {
        stream: RecvStream,
        data: Option<Bytes>,
    },
    Long(Reader),
}

// === impl Source ===

impl Source {
    /// The source for a stream whose head was just read. Waiting data count for `account`; a body
    /// that has arrived as a whole must be read at once.
    pub fn new(mut stream: RecvStream, collector: &Arc<Collector>, account: Option<&Account>) -> Self {
        if stream.is_end_stream() {
            return Self::Whole { stream, data: None };
        }
        // Most bodies are short and arrive with their heads.
        let first = match stream.poll_data(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(data))) if stream.is_end_stream() => return Self::Whole { stream, data: Some(data) },
            Poll::Ready(Some(Ok(data))) => data,
            // h2 reports any other end again.
            _ => Bytes::new(),
        };
        Self::Long(Reader::new(stream, first, collector, account.cloned()))
    }

    /// Returns the next piece. Gives its window back: from here on the reader's own window holds
    /// it.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        match self {
            Self::Whole { stream, data } => {
                let data = data.take();
                if let Some(data) = &data {
                    release(stream, data.len());
                }
                Poll::Ready(data.map(Ok))
            }
            Self::Long(reader) => reader.poll_data(cx),
        }
    }

    /// For a body that has arrived, but will be read late: counts for `account` until it is
    /// dropped.
    pub fn keep_for(&mut self, account: &Account) {
        if let Self::Whole { data: Some(data), .. } = self {
            *data = account.charge(std::mem::take(data));
        }
    }

    /// Must be called after the last piece.
    pub fn poll_trailers(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
        match self {
            Self::Whole { stream, .. } => stream.poll_trailers(cx),
            Self::Long(reader) => reader.poll_trailers(cx),
        }
    }

    /// Whether the peer has ended the stream, and all of it was read.
    pub fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole { data, .. } => data.is_none(),
            Self::Long(reader) => {
                let kept = reader.unread.kept.lock();
                kept.as_ref().is_none_or(|kept| kept.is_empty() && kept.stream.is_end_stream())
            }
        }
    }
}
