//! The fallback for a server that does not speak HTTP/2: one connection per stream.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::Body;
use net::permit::Permit;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::BoxError;

use super::connect::Connect;

/// Most streams, each with its own connection. Further ones are refused.
const STREAMS: usize = 8_192;
const FULL: &str = "too many requests at a time (limit 8192: the server does not speak HTTP/2)";
/// Time until HTTP/2 is tried again: a proxy in between may have been the part without HTTP/2.
const RETRY_HTTP2_AFTER: Duration = Duration::from_mins(10);

/// The HTTP/1.1 client of a pool. Clones share it.
#[derive(Clone)]
pub struct Http1 {
    client: legacy::Client<Connect, Body>,
    streams: Arc<AtomicUsize>,
    /// The pool uses HTTP/1.1 until then. `None`: the pool does not use it.
    until: Arc<Mutex<Option<Instant>>>,
}

/// A copy of `request`, if it can safely be sent twice: it changes nothing and has no body.
pub fn repeatable(request: &Request<Body>) -> Option<Request<Body>> {
    if request.method() != Method::GET {
        return None;
    }
    let mut again = Request::new(Body::empty());
    again.method_mut().clone_from(request.method());
    again.uri_mut().clone_from(request.uri());
    again.headers_mut().clone_from(request.headers());
    Some(again)
}

// === impl Http1 ===

impl Http1 {
    pub fn new(connect: Connect) -> Self {
        let client = legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connect);
        Self { client, streams: Arc::default(), until: Arc::default() }
    }

    /// Whether a request uses HTTP/1.1. After the time is over, one request that can be sent again
    /// tries HTTP/2, and the time begins anew. The others stay on HTTP/1.1 until the result is
    /// known.
    pub fn takes(&self, can_be_sent_again: bool) -> bool {
        let (mut until, now) = (self.until.lock(), Instant::now());
        match *until {
            Some(over) if over <= now && can_be_sent_again => {
                *until = Some(now + RETRY_HTTP2_AFTER);
                false
            }
            until => until.is_some(),
        }
    }

    /// Records that the server does not speak HTTP/2. Returns whether this is new.
    pub fn begins(&self) -> bool {
        self.until.lock().replace(Instant::now() + RETRY_HTTP2_AFTER).is_none()
    }

    /// Records that the server speaks HTTP/2.
    pub fn ends(&self) {
        *self.until.lock() = None;
    }

    pub async fn send(&self, request: Request<Body>) -> Result<(Response<Incoming>, Permit<AtomicUsize>), BoxError> {
        let stream = Permit::of(&self.streams, STREAMS).ok_or(FULL)?;
        Ok((self.client.request(request).await?, stream))
    }
}
