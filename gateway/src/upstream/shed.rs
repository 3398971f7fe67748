//! Connections to members that end because of what they hold.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::holding::{Account, Backlog};

/// What a connection holds by itself.
pub struct Held {
    /// Has heads that are not whole,
    pub account: Account,
    /// and in the tunnel what was not read.
    pub backlog: Option<Arc<Backlog>>,
}

/// Drives a connection, unless it is to give way for what its `account` has. While that is nothing,
/// as nearly always, it costs two looks.
pub struct Counted<D> {
    driver: D,
    account: Account,
    /// It grows while the driver is not polled.
    has_backlog: bool,
}

/// The connection gave way.
#[derive(Debug, thiserror::Error)]
#[error("the gateway holds too many bytes, and heads that the member does not finish hold the most")]
pub struct GaveWay;

// === impl Held ===

impl Held {
    /// The request that had the connection to itself has let go of it.
    pub fn request_is_over(&self) {
        if let Some(backlog) = &self.backlog {
            backlog.count_for_connection();
        }
    }
}

// === impl Counted ===

impl<D> Counted<D> {
    pub fn new(driver: D, held: &Held) -> Self {
        Self { driver, account: held.account.clone(), has_backlog: held.backlog.is_some() }
    }

    fn gives_way(&self, cx: &Context<'_>) -> bool {
        // A holder of nothing gets no request to give way, so nothing has to wake it.
        if self.has_backlog || self.account.held() > 0 {
            self.account.check(cx).is_err()
        } else {
            self.account.is_ended()
        }
    }
}

impl<D: Future + Unpin> Future for Counted<D> {
    type Output = Result<D::Output, GaveWay>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(end) = Pin::new(&mut self.driver).poll(cx) {
            return Poll::Ready(Ok(end));
        }
        if self.gives_way(cx) { Poll::Ready(Err(GaveWay)) } else { Poll::Pending }
    }
}
