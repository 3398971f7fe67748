//! Limits on the size of responses. kube's clients buffer each response, and each line of a watch,
//! until it is complete, however long it is.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use http::{Request, Response};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::Client;
use kube::client::{Body, ClientBuilder};
use kube::config::Config;
use tower::{BoxError, Layer, Service};

/// Largest accepted response, in bytes: about 15,000 clusters with a CA bundle and a token each.
pub const LARGEST: usize = 128 << 20;
/// Longest accepted line of a watch, in bytes. An object takes up to 1.5 MiB in etcd, and up to six
/// times as much as JSON that escapes every character. A lower limit would fail forever: the
/// watcher would get the same line again each time it resumes.
const LONGEST_LINE: usize = 10 << 20;

/// A layer that ends responses above these limits with an error.
#[derive(Debug, Clone, Copy)]
pub struct Bounded {
    /// Most bytes of a response.
    whole: usize,
    /// Most bytes of one line of a watch.
    line: usize,
}

/// The client that [`Bounded`] wraps.
#[derive(Debug, Clone)]
pub struct BoundedService<S> {
    inner: S,
    most: Bounded,
}

/// The body of a response, cut off at `most`.
#[derive(Debug)]
pub struct BoundedBody<B> {
    inner: B,
    path: Box<str>,
    is_watch: bool,
    most: usize,
    /// Bytes since the start, or since the last newline in a watch.
    taken: usize,
}

/// The response exceeded the limit.
#[derive(Debug, thiserror::Error)]
pub enum TooLarge {
    #[error("the answer to {path} is too large: more than {most} bytes")]
    Answer { path: Box<str>, most: usize },
    #[error("an event of the watch of {path} is too large: more than {most} bytes")]
    Event { path: Box<str>, most: usize },
}

/// kube's own client, with limits on its responses.
pub fn client(config: Config) -> kube::Result<Client> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&Bounded::USUAL).build())
}

// === impl Bounded ===

impl Bounded {
    pub const USUAL: Self = Self { whole: LARGEST, line: LONGEST_LINE };
}

impl<S> Layer<S> for Bounded {
    type Service = BoundedService<S>;

    fn layer(&self, inner: S) -> BoundedService<S> {
        BoundedService { inner, most: *self }
    }
}

impl<S, B> Service<Request<Body>> for BoundedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: 'static,
{
    type Response = Response<BoundedBody<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (most, path) = (self.most, request.uri().path().into());
        let asks_to_watch = api::query::flag(request.uri().query(), "watch");
        let bounded = move |response: Response<B>| {
            // An error response is not a watch.
            let is_watch = asks_to_watch && response.status().is_success();
            let most = if is_watch { most.line } else { most.whole };
            response.map(|inner| BoundedBody { inner, path, is_watch, most, taken: 0 })
        };
        self.inner.call(request).map_ok(bounded).boxed()
    }
}

// === impl BoundedBody ===

impl<B> BoundedBody<B> {
    /// Counts `data`. Returns whether it is within the limit.
    fn count(&mut self, data: &[u8]) -> bool {
        if !self.is_watch {
            self.taken += data.len();
            return self.taken <= self.most;
        }
        let mut pieces = data.split(|byte| *byte == b'\n');
        // `split` always yields a first piece, possibly empty.
        self.taken += pieces.next().map_or(0, <[u8]>::len);
        let mut longest = self.taken;
        for piece in pieces {
            self.taken = piece.len();
            longest = longest.max(self.taken);
        }
        longest <= self.most
    }

    fn too_large(&self) -> TooLarge {
        let (path, most) = (self.path.clone(), self.most);
        if self.is_watch { TooLarge::Event { path, most } } else { TooLarge::Answer { path, most } }
    }
}

impl<B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin> HttpBody for BoundedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = Pin::new(&mut self.inner).poll_frame(cx).map_err(Into::into);
        if let Poll::Ready(Some(Ok(frame))) = &next
            && let Some(data) = frame.data_ref()
            && !self.count(data)
        {
            return Poll::Ready(Some(Err(self.too_large().into())));
        }
        next
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests;
