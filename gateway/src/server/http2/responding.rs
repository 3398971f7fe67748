//! Handles one request of an HTTP/2 connection, then sends its response.

mod sending;

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use h2::Reason;
use h2::server::SendResponse;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderValue, Response};
use hyper::body::Body;
use net::words;

use self::sending::Sending;
use crate::holding::{self, Account, ToldToGiveWay};
use crate::record::RecordedBody;

/// Runs as its own task. A client that resets the stream ends it in any phase.
pub struct Responding<F>(Phase<F>);

enum Phase<F> {
    /// Boxed, and dropped before the body is sent, which takes hours for a watch.
    Handling(Pin<Box<F>>, SendResponse<Bytes>),
    Sending(Sending),
}

/// Most bytes of the client's window that a piece claims while there is no room.
const ASKED_FIRST: usize = 16 * 1024;

// === impl Responding ===

impl<F> Responding<F> {
    pub fn new(handling: F, respond: SendResponse<Bytes>) -> Self {
        Self(Phase::Handling(Box::pin(handling), respond))
    }
}

impl<F: Future<Output = (Response<RecordedBody>, Account)>> Future for Responding<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.0 {
                Phase::Handling(handling, respond) => {
                    let Poll::Ready((response, account)) = handling.as_mut().poll(cx) else {
                        return respond.poll_reset(cx).map(drop);
                    };
                    match begin(respond, response, account) {
                        Some(sending) => self.0 = Phase::Sending(sending),
                        None => return Poll::Ready(()),
                    }
                }
                Phase::Sending(sending) => return sending.poll(cx),
            }
        }
    }
}

/// Sends the head. Returns `None` if that was all of it, or the client is gone.
fn begin(respond: &mut SendResponse<Bytes>, response: Response<RecordedBody>, account: Account) -> Option<Sending> {
    let (mut head, body) = response.into_parts();
    // RFC 9110 §6.6.1. Members have set their own.
    head.headers.entry(DATE).or_insert_with(now);
    let is_whole = body.is_end_stream();
    if !is_whole && let Some(length) = body.size_hint().exact() {
        head.headers.entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    holding::hold_head(&account, &mut head.headers, is_whole);
    let is_told = account.is_ended() && head.extensions.get::<ToldToGiveWay>().is_some();
    match respond.send_response(Response::from_parts(head, ()), is_whole) {
        Ok(stream) => {
            if is_whole {
                account.holder().end_with_connection();
            }
            let (is_apart, has_waker) = (false, true);
            (!is_whole).then_some(Sending { body, stream, waiting: None, is_apart, account, is_told, has_waker })
        }
        Err(error) => {
            tracing::debug!(error = words::causes(&error), "cannot send a response");
            respond.send_reset(Reason::INTERNAL_ERROR);
            None
        }
    }
}

fn now() -> HeaderValue {
    let date = httpdate::fmt_http_date(SystemTime::now());
    HeaderValue::from_maybe_shared(Bytes::from(date)).expect("a date is ASCII")
}

#[cfg(test)]
mod tests;
