//! Lists that the hub sends as the first events of a watch (`sendInitialEvents`), and the memory of
//! a hub that could not.
//!
//! A list is complete with a bookmark. Where it does not come, the hub is asked for no other list
//! of this kind for [`PAGES_FOR`]: such requests are refused here, as a hub refuses them. So it is
//! after a deletion before the bookmark, which makes the list useless: a tenant who deletes objects
//! again and again must not keep the next list from coming whole.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode, Uri};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use kube::client::{Body, ClientBuilder};
use kube::core::Status;
use kube::{Client, Config};
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service};

use super::bounded::Bounded;

/// Time without such lists of a hub that has not sent one whole.
pub(super) const PAGES_FOR: Duration = Duration::from_mins(5);

/// Most bytes of a list: 10,000 objects of 25 KiB. Each comes into its program's memory at once,
/// and a hub, or a proxy before it, may send as many as it likes. More come in pages.
const LARGEST: usize = 256 << 20;

const ASKS: &str = "sendInitialEvents";
/// As kube's watcher asks: a hub may answer from a cache, however old. Without it, the list is at
/// least as new as the request, as one in pages is.
const OF_ANY_AGE: &str = "resourceVersion=0";

/// How a hub begins lines. The type comes first.
const BOOKMARK: &[u8] = br#"{"type":"BOOKMARK""#;
const DELETED: &[u8] = br#"{"type":"DELETED""#;
/// Annotation on the bookmark that completes a list (KEP-3157).
const COMPLETE: &[u8] = br#""k8s.io/initial-events-end":"true""#;
/// Bytes of a line that are looked at. Bookmarks have fewer.
const BEGINNING: usize = 1024;

/// A layer that remembers whether the hub sends lists so.
#[derive(Debug, Clone)]
pub(super) struct Streamed {
    /// Until then, it does not.
    paged_until: Arc<Mutex<Option<Instant>>>,
    /// Most bytes of a list.
    most: usize,
}

/// The client that [`Streamed`] wraps.
#[derive(Debug, Clone)]
pub(super) struct StreamedService<S> {
    inner: S,
    known: Streamed,
}

/// The body of a response, perhaps of a list that is not complete yet.
#[derive(Debug)]
pub(super) struct StreamedBody<B> {
    inner: B,
    list: Option<Asked>,
}

/// A list that was asked for. The hub is remembered as one that could not send it, unless
/// [`Asked::settle`] is called.
#[derive(Debug)]
struct Asked {
    known: Streamed,
    /// The beginning of the current line.
    line: Vec<u8>,
    /// Bytes that have come.
    taken: usize,
    is_settled: bool,
}

/// What a line says about a list.
enum Sign {
    Complete,
    Deleted,
    TooLarge,
}

/// kube's watcher ignores deletions before a list is complete.
#[derive(Debug, thiserror::Error)]
#[error("an object was deleted before the hub had sent the whole list")]
struct DeletedMeanwhile;

#[derive(Debug, thiserror::Error)]
#[error("the hub sent more than {0} bytes of a list as events, and not its end")]
struct TooLarge(usize);

/// A client with limits on its responses, which remembers that.
pub(super) fn client(config: Config) -> kube::Result<Client> {
    Ok(ClientBuilder::try_from(config)?.with_layer(&Bounded::USUAL).with_layer(&Streamed::default()).build())
}

fn refused() -> BoxError {
    let status = Status::failure("this hub did not send a list as events a moment ago", "Invalid");
    kube::Error::Api(status.with_code(StatusCode::UNPROCESSABLE_ENTITY.as_u16()).boxed()).into()
}

/// The same request for a list that is at least as new as the request.
fn most_recent(uri: &Uri) -> Option<Uri> {
    let query: Vec<&str> = uri.query()?.split('&').filter(|pair| *pair != OF_ANY_AGE).collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{}", uri.path(), query.join("&")).parse().ok()?);
    Uri::from_parts(parts).ok()
}

// === impl Streamed ===

impl Streamed {
    #[cfg(test)]
    pub(super) fn of_at_most(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    fn is_paged(&self) -> bool {
        self.paged_until.lock().is_some_and(|until| Instant::now() < until)
    }
}

impl Default for Streamed {
    fn default() -> Self {
        Self { paged_until: Arc::default(), most: LARGEST }
    }
}

impl<S> Layer<S> for Streamed {
    type Service = StreamedService<S>;

    fn layer(&self, inner: S) -> StreamedService<S> {
        StreamedService { inner, known: self.clone() }
    }
}

// === impl StreamedService ===

impl<S, B> Service<Request<Body>> for StreamedService<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + 'static,
    B: 'static,
{
    type Response = Response<StreamedBody<B>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<StreamedBody<B>>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let mut list: Option<Asked> = None;
        if api::query::flag(request.uri().query(), ASKS) {
            if self.known.is_paged() {
                return async { Err(refused()) }.boxed();
            }
            list = Some(Asked { known: self.known.clone(), line: Vec::new(), taken: 0, is_settled: false });
            if let Some(uri) = most_recent(request.uri()) {
                *request.uri_mut() = uri;
            }
        }
        let answered = move |answer: Result<Response<B>, S::Error>| -> Result<Response<StreamedBody<B>>, BoxError> {
            match answer {
                Ok(response) => {
                    let list = list.and_then(|list| list.answered(response.status()));
                    Ok(response.map(|inner| StreamedBody { inner, list }))
                }
                Err(error) => {
                    if let Some(list) = list {
                        list.settle();
                    }
                    Err(error.into())
                }
            }
        };
        self.inner.call(request).map(answered).boxed()
    }
}

// === impl Asked ===

impl Asked {
    /// None if no list follows.
    fn answered(self, status: StatusCode) -> Option<Self> {
        match status {
            _ if status.is_success() => return Some(self),
            // These would be the answers to a list in pages, too.
            StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::GONE
            | StatusCode::TOO_MANY_REQUESTS => self.settle(),
            _ => drop(self),
        }
        None
    }

    fn settle(mut self) {
        self.is_settled = true;
    }

    fn read(&mut self, data: &[u8]) -> Option<Sign> {
        for (number, piece) in data.split(|byte| *byte == b'\n').enumerate() {
            if number > 0 {
                self.line.clear();
            }
            let room = BEGINNING.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if self.line.starts_with(DELETED) {
                return Some(Sign::Deleted);
            }
            if self.line.starts_with(BOOKMARK) && self.line.windows(COMPLETE.len()).any(|part| part == COMPLETE) {
                return Some(Sign::Complete);
            }
        }
        self.taken += data.len();
        (self.taken > self.known.most).then_some(Sign::TooLarge)
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if !self.is_settled {
            *self.known.paged_until.lock() = Some(Instant::now() + PAGES_FOR);
        }
    }
}

// === impl StreamedBody ===

impl<B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Unpin> HttpBody for StreamedBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = Pin::new(&mut self.inner).poll_frame(cx).map_err(Into::into);
        let Poll::Ready(Some(Ok(frame))) = &next else { return next };
        let sign = frame.data_ref().and_then(|data| self.list.as_mut()?.read(data));
        match sign {
            Some(Sign::Complete) => {
                if let Some(list) = self.list.take() {
                    list.settle();
                }
                next
            }
            Some(Sign::Deleted) => {
                self.list = None;
                Poll::Ready(Some(Err(DeletedMeanwhile.into())))
            }
            Some(Sign::TooLarge) => {
                let most = self.list.take().map_or(0, |list| list.known.most);
                Poll::Ready(Some(Err(TooLarge(most).into())))
            }
            None => next,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDED: &str = r#"{"type":"ADDED","object":{"data":"{\"type\":\"DELETED\"","metadata":{}}}"#;
    const END: &str =
        r#"{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}"#;

    /// The first sign in these pieces.
    fn sign(pieces: [&[u8]; 2]) -> Option<Sign> {
        let mut list = Asked { known: Streamed::default(), line: Vec::new(), taken: 0, is_settled: true };
        pieces.into_iter().find_map(|piece| list.read(piece))
    }

    #[test]
    fn lines_are_known_by_their_type_however_they_are_cut() {
        let whole = format!("{ADDED}\n{END}\n");
        let deleted = format!("{ADDED}\n{}\n{END}\n", ADDED.replace("ADDED", "DELETED"));
        for cut in 0..whole.len() {
            let found = sign(whole.as_bytes().split_at(cut).into());
            assert!(matches!(found, Some(Sign::Complete)), "cut at {cut}");
            let found = sign(deleted.as_bytes().split_at(cut).into());
            assert!(matches!(found, Some(Sign::Deleted)), "cut at {cut}");
        }
        for other in [ADDED, &END.replace("true", "false"), &END.replace("BOOKMARK", "MODIFIED")] {
            assert!(sign([other.as_bytes(), b"\n"]).is_none(), "{other}");
        }
    }

    #[test]
    fn a_list_is_not_asked_for_at_any_age() {
        let asked = "/api/v1/secrets?&watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        let uri = format!("{asked}&resourceVersion=0").parse().unwrap();
        assert_eq!(most_recent(&uri).unwrap(), asked);
    }
}
