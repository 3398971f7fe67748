//! Decides when a connection must end at once: when it holds too much, or when, as a stranger's,
//! it sends no request in time or must make room.

use std::pin::Pin;
use std::task::{Context, Poll};

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

async fn stranger(connection: &Connection) -> Ended {
    let silent = async {
        tokio::time::sleep(Limits::FIRST_REQUEST).await;
        if connection.has_begun() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = connection.given_away() => Ended::MadeRoom,
        () = silent => Ended::NoRequest(Limits::FIRST_REQUEST),
    }
}

// === impl Cut ===

impl<'c> Cut<'c> {
    pub(super) fn new(connection: &'c Connection) -> Self {
        Self { connection, stranger: Some(Box::pin(stranger(connection))) }
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
