//! Counts responses: the body until the client's socket has taken it, and the memory for heads.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use hyper::body::Body;

use crate::holding::{self, Account};
use crate::record::RecordedBody;
use crate::upstream::Truncated;

pub struct HeldBody {
    body: RecordedBody,
    account: Account,
}

/// The largest head that was sent on a connection: hyper's buffer keeps memory for it.
#[derive(Default)]
pub struct Heads(AtomicUsize);

// === impl Heads ===

impl Heads {
    /// Counts a sent head with `headers` on the connection of `account`.
    pub fn keep(&self, headers: &HeaderMap, account: &Account) {
        let room = holding::room(holding::lines(headers));
        let before = self.0.fetch_max(room, Ordering::Relaxed);
        if room > before {
            account.take(room - before);
        }
    }
}

// === impl HeldBody ===

impl HeldBody {
    /// hyper does not poll the body while the client does not read, so from here on the request can
    /// only end with its connection.
    pub fn new(body: RecordedBody, account: Account) -> Self {
        account.holder().end_with_own_connection();
        Self { body, account }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Truncated;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Truncated>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        polled.map_ok(|frame| frame.map_data(|data| holding::hold_piece(&this.account, data)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
