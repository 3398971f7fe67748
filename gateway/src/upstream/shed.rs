//! Ends connections to members that hold too many bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::holding::{Account, Backlog};

/// What counts for one connection.
pub struct ConnectionBytes {
    /// Counts incomplete heads.
    pub account: Account,
    /// Counts unread bytes in the tunnel.
    pub backlog: Option<Arc<Backlog>>,
}

/// Drives a connection until it must give way for the bytes in its `account`. Nearly always there
/// are none; then the check is two loads.
pub struct Counted<D> {
    driver: D,
    account: Account,
    /// Whether there is a backlog, which grows while the driver is not polled.
    has_backlog: bool,
}

/// The connection ended because it held too much.
#[derive(Debug, thiserror::Error)]
#[error("the gateway reached --max-held-bytes and closed this member's connection, which held the most")]
pub struct GaveWay;

// === impl ConnectionBytes ===

impl ConnectionBytes {
    /// The request that used the connection is over.
    pub fn request_is_over(&self) {
        if let Some(backlog) = &self.backlog {
            backlog.count_for_connection();
        }
    }
}

// === impl Counted ===

impl<D> Counted<D> {
    pub fn new(driver: D, held: &ConnectionBytes) -> Self {
        Self { driver, account: held.account.clone(), has_backlog: held.backlog.is_some() }
    }

    fn gives_way(&self, cx: &Context<'_>) -> bool {
        // A holder without bytes is never asked to give way, so it needs no waker.
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
