//! The task that moves a link's frames, checks that its peer is alive, and reports its end.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::client::{Connection, SendRequest};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::{LinkError, Phase, broken};
use crate::activity::Activity;
use crate::keepalive::Keepalive;
use crate::leaving::Leaving;
use crate::signals::Signal;
use crate::stream::UnattendedStreams;
use crate::turn::Turns;

/// The state of a link that its driver and its handles share.
#[derive(Debug)]
pub(super) struct Shared {
    pub activity: Arc<Activity>,
    pub phase: watch::Sender<Phase>,
    pub streams: Arc<Leaving>,
    pub unattended: Arc<UnattendedStreams>,
}

/// Owns the connection.
pub(super) struct Driver<T> {
    connection: Connection<T, Bytes>,
    /// Fails as soon as a GOAWAY has come. Dropped when no handle is left, because h2 keeps a
    /// connection on which streams could be opened.
    sender: Option<SendRequest<Bytes>>,
    keepalive: Keepalive,
    turns: Turns,
    end: End,
}

/// Reports the end, also when the task panics or its runtime is shut down.
struct End(Arc<Shared>, LinkError);

// === impl Shared ===

impl Shared {
    pub fn leaving(&self) {
        self.streams.all();
        self.phase.send_if_modified(|phase| {
            let open = matches!(phase, Phase::Open);
            if open {
                *phase = Phase::Leaving;
            }
            open
        });
    }

    pub async fn ended(&self) -> LinkError {
        let mut phase = self.phase.subscribe();
        match phase.wait_for(|phase| matches!(phase, Phase::Ended(_))).await.as_deref() {
            Ok(Phase::Ended(error)) => error.clone(),
            _ => LinkError::Closed,
        }
    }
}

// === impl Driver ===

impl<T: AsyncRead + AsyncWrite + Unpin> Driver<T> {
    pub fn new(
        connection: Connection<T, Bytes>,
        sender: SendRequest<Bytes>,
        keepalive: Keepalive,
        turns: Turns,
        shared: Arc<Shared>,
    ) -> Self {
        let end = End(shared, LinkError::Aborted);
        Self { connection, sender: Some(sender), keepalive, turns, end }
    }

    pub async fn run(mut self) {
        self.end.1 = poll_fn(|cx| self.poll(cx)).await;
        tracing::debug!(reason = %self.end.1, "link ended");
        // Before the end is reported, so that streams fail first: a waiter for the end finds them
        // ended.
        let Self { connection, sender, end, .. } = self;
        drop((connection, sender));
        drop(end);
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<LinkError> {
        let activity = &self.end.0.activity;
        activity.signals.register(cx.waker());
        if activity.signals.has(Signal::Close) {
            return Poll::Ready(LinkError::Closed);
        }
        if self.sender.is_some() && activity.signals.has(Signal::Abandoned) {
            self.sender = None;
        }
        loop {
            if let Poll::Ready(end) = Pin::new(&mut self.connection).poll(cx) {
                return Poll::Ready(end.map_or_else(broken, |()| LinkError::Closed));
            }
            self.end.0.unattended.attend();
            if let Some(sender) = &mut self.sender
                && let Poll::Ready(Err(_)) = sender.poll_ready(cx)
            {
                self.sender = None;
                self.end.0.leaving();
            }
            let announce = |window| self.connection.set_initial_window_size(window);
            if let Err(silence) = ready!(self.keepalive.tend(cx, &self.turns, announce)) {
                return Poll::Ready(LinkError::Silent(silence));
            }
        }
    }
}

// === impl End ===

impl Drop for End {
    fn drop(&mut self) {
        self.0.streams.all();
        self.0.phase.send_replace(Phase::Ended(self.1.clone()));
    }
}
