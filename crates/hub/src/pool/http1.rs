//! What a server gets that does not speak HTTP/2: a connection for each stream.

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

/// Streams, each of which has a connection; more are refused.
const STREAMS: usize = 8_192;
const FULL: &str = "too many requests at a time (limit 8192: the server does not speak HTTP/2)";
/// Until HTTP/2 is tried again: a proxy in between may have been what did not speak it.
const RETRY_HTTP2_AFTER: Duration = Duration::from_mins(10);

/// Clones share.
#[derive(Clone)]
pub struct Http1 {
    client: legacy::Client<Connect, Body>,
    streams: Arc<AtomicUsize>,
    /// It is what the server gets until then; none: it is not.
    until: Arc<Mutex<Option<Instant>>>,
}

/// The same request, of one that may be sent once more because it changes nothing and has no body.
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

    /// Whether a request goes this way. When its time is over, one that can be sent once more tries
    /// HTTP/2, and the others go on like this until it knows.
    pub fn is_for(&self, can_be_sent_again: bool) -> bool {
        let (mut until, now) = (self.until.lock(), Instant::now());
        match *until {
            Some(over) if over <= now && can_be_sent_again => {
                *until = Some(now + RETRY_HTTP2_AFTER);
                false
            }
            until => until.is_some(),
        }
    }

    /// The server does not speak HTTP/2. Returns whether that is news.
    pub fn begins(&self) -> bool {
        self.until.lock().replace(Instant::now() + RETRY_HTTP2_AFTER).is_none()
    }

    /// It does.
    pub fn ends(&self) {
        *self.until.lock() = None;
    }

    pub async fn send(&self, request: Request<Body>) -> Result<(Response<Incoming>, Permit<AtomicUsize>), BoxError> {
        let stream = Permit::of(&self.streams, STREAMS).ok_or(FULL)?;
        Ok((self.client.request(request).await?, stream))
    }
}
