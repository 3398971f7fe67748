//! Connections to members that end because of what they hold.

use std::pin::Pin;
use std::task::{Context, Poll};

use crate::holding::Account;

/// Drives a connection, unless it is to give way for what its `account` has. While that is nothing,
/// as nearly always, it costs two looks.
pub struct Counted<D> {
    driver: D,
    account: Account,
}

/// The connection gave way.
#[derive(Debug, thiserror::Error)]
#[error("the gateway holds too many bytes, and heads that the member does not finish hold the most")]
pub struct GaveWay;

// === impl Counted ===

impl<D> Counted<D> {
    pub fn new(driver: D, account: Account) -> Self {
        Self { driver, account }
    }

    fn gives_way(&self, cx: &Context<'_>) -> bool {
        // What holds nothing is told nothing, so nothing has to wake it.
        if self.account.held() > 0 { self.account.check(cx).is_err() } else { self.account.is_ended() }
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
