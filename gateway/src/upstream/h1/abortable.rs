//! A request body that can be aborted.
//!
//! hyper's HTTP/1.1 client owns the body that it sends, and would continue to send it after the
//! member's response has ended. The rest has no reader then (RFC 9112 §9.3): aborting the body ends
//! the member's connection, and dropping the client's end of it ends the client's.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use hyper::body::Body;
use parking_lot::Mutex;

use crate::request_body::{Interrupted, RequestBody};

/// The body, as hyper sends it.
pub struct AbortableBody {
    body: Option<RequestBody>,
    state: Arc<Mutex<BodyProgress>>,
}

/// Aborts the body.
pub struct AbortHandle(Arc<Mutex<BodyProgress>>);

#[derive(Default)]
struct BodyProgress {
    aborted: bool,
    ended: bool,
    interrupted: Option<Interrupted>,
    waker: Option<Waker>,
}

/// Splits `body` into the part for hyper and a handle that can abort it.
pub fn abortable(body: RequestBody) -> (AbortableBody, AbortHandle) {
    let state = Arc::new(Mutex::new(BodyProgress { ended: body.is_end_stream(), ..BodyProgress::default() }));
    (AbortableBody { body: Some(body), state: Arc::clone(&state) }, AbortHandle(state))
}

// === impl AbortHandle ===

impl AbortHandle {
    /// Whether all of the body was sent.
    pub fn has_ended(&self) -> bool {
        self.0.lock().ended
    }

    /// Why the body broke off before its end, if it did and was not aborted. Only the first call
    /// returns it.
    pub fn interrupted(&self) -> Option<Interrupted> {
        self.0.lock().interrupted.take()
    }

    /// Ends the body with an error, if it has not ended yet.
    pub fn abort(&self) {
        let waker = {
            let mut state = self.0.lock();
            state.aborted = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

// === impl AbortableBody ===

impl AbortableBody {
    /// Returns the body, unless it was aborted.
    pub fn into_inner(self) -> Option<RequestBody> {
        self.body
    }
}

impl Body for AbortableBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *body).poll_frame(cx);
        let mut state = this.state.lock();
        if state.aborted {
            drop(state);
            this.body = None;
            return Poll::Ready(Some(Err(io::Error::new(io::ErrorKind::ConnectionAborted, "no longer wanted"))));
        }
        match &polled {
            Poll::Ready(None) => state.ended = true,
            Poll::Ready(Some(_)) => state.ended = body.is_end_stream(),
            Poll::Pending => state.waker = Some(cx.waker().clone()),
        }
        polled.map_err(|interrupted| {
            state.interrupted = Some(interrupted);
            io::Error::other("it broke off")
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Empty};
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use kit::wait::{WAIT, within};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::holding::{self, Budget};
    use crate::request_body::ReadAhead;

    /// A body of which this arrives, and then the connection ends. Ten bytes are announced.
    async fn body(arrives: &str) -> RequestBody {
        let (ours, mut theirs) = duplex(1024);
        let (mut sender, driver) = http1::handshake(TokioIo::new(ours)).await.unwrap();
        tokio::spawn(driver);
        let request = http::Request::get("/").body(Empty::<Bytes>::new()).unwrap();
        let peer = async {
            theirs.read_u8().await.unwrap();
            theirs.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n").await.unwrap();
            theirs.write_all(arrives.as_bytes()).await.unwrap();
        };
        let (answer, ()) = tokio::join!(sender.send_request(request), peer);
        let account = holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into());
        RequestBody::of_http1(answer.unwrap().into_body(), &ReadAhead::default(), account)
    }

    /// Otherwise the member would be said to have failed.
    #[tokio::test]
    async fn it_is_known_whether_the_client_broke_its_upload_off() {
        for (arrives, is_whole) in [("0123456789", true), ("0123", false)] {
            let (mut sent, abort) = abortable(body(arrives).await);
            while let Some(Ok(_)) = within(WAIT, "a piece of the body", sent.frame()).await {}
            assert_eq!((abort.has_ended(), abort.interrupted().is_none()), (is_whole, is_whole), "{arrives}");
        }
        let (mut sent, abort) = abortable(body("").await);
        abort.abort();
        let last = within(WAIT, "the end", sent.frame()).await;
        assert!(matches!(last, Some(Err(_))) && abort.interrupted().is_none(), "the gateway ended it");
    }
}
