//! Decides when a connection must end at once: when it holds too much, or when, as a stranger's,
//! it sends no request in time or must make room.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::task::coop::unconstrained;

use super::Ended;
use super::limits::Limits;
use crate::connection::Connection;

/// Completes when the connection must end. Polled with every poll of the connection; once the user
/// is known, that costs a load.
pub(super) struct Cut<'c> {
    connection: &'c Connection,
    /// None once the connection's user is known.
    stranger: Option<Pin<Box<dyn Future<Output = Ended> + Send + 'c>>>,
}

/// Looked at even if the connection has used up its task's budget: a client that never stops
/// sending may do that in every poll.
fn stranger(given_away: impl Future<Output = ()>, has_begun: impl Fn() -> bool) -> impl Future<Output = Ended> {
    let silent = async move {
        tokio::time::sleep(Limits::FIRST_REQUEST).await;
        if has_begun() {
            std::future::pending::<()>().await;
        }
    };
    unconstrained(async move {
        tokio::select! {
            () = given_away => Ended::MadeRoom,
            () = silent => Ended::NoRequest(Limits::FIRST_REQUEST),
        }
    })
}

// === impl Cut ===

impl<'c> Cut<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        let stranger = stranger(connection.given_away(), move || connection.has_begun());
        Self { connection, stranger: Some(Box::pin(stranger)) }
    }
}

impl Future for Cut<'_> {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        let this = &mut *self;
        if this.connection.held().check(cx).is_err() {
            return Poll::Ready(Ended::HeldTooMuch);
        }
        match &mut this.stranger {
            Some(_) if this.connection.is_known() => this.stranger = None,
            Some(stranger) => return stranger.as_mut().poll(cx),
            None => {}
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, poll_fn};
    use std::pin::pin;
    use std::time::Duration;

    use tokio::task::coop::poll_proceed;

    use super::*;

    /// Polls after a connection that has used up the task's budget.
    async fn poll(mut stranger: Pin<&mut impl Future<Output = Ended>>) -> Poll<Ended> {
        poll_fn(|cx| {
            while let Poll::Ready(read) = poll_proceed(cx) {
                read.made_progress();
            }
            Poll::Ready(stranger.as_mut().poll(cx))
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn a_stranger_that_never_stops_sending_gets_no_more_time() {
        let mut stranger = pin!(stranger(pending(), || false));
        assert!(poll(stranger.as_mut()).await.is_pending());
        tokio::time::advance(Limits::FIRST_REQUEST + Duration::from_secs(1)).await;
        assert!(matches!(poll(stranger.as_mut()).await, Poll::Ready(Ended::NoRequest(_))));
    }
}
