//! Sends requests to one server.

use futures_util::TryFutureExt as _;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as HttpBody, Bytes};
use kube::Client;
use kube::client::Body;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Service, ServiceExt as _};

/// Like kube's client, but without its queue, which takes 10 KiB and a task: there are thousands of
/// watches, each of one kind in one namespace of one cluster.
#[derive(Clone)]
pub struct Sender(BoxCloneSyncService<Request<Body>, Response<Streamed>, BoxError>);

/// The body of a response, as it arrives.
pub type Streamed = UnsyncBoxBody<Bytes, kube::Error>;

pub fn streamed<B>(body: B) -> Streamed
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(|error| failed(error.into())).boxed_unsync()
}

fn failed(error: BoxError) -> kube::Error {
    error.downcast().map_or_else(kube::Error::Service, |known| *known)
}

// === impl Sender ===

impl Sender {
    pub fn new<S, B>(service: S) -> Self
    where
        S: Service<Request<Body>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send + 'static,
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let wrapped = |response: Response<B>| response.map(streamed);
        Self(BoxCloneSyncService::new(service.map_response(wrapped).map_err(Into::into)))
    }

    /// # Errors
    ///
    /// Fails like kube's client.
    pub async fn send(&self, request: Request<Body>) -> Result<Response<Streamed>, kube::Error> {
        self.0.clone().oneshot(request).map_err(failed).await
    }

    /// A kube client that sends its requests with this sender.
    pub fn client(self, namespace: &str) -> Client {
        Client::new(self.0, namespace)
    }
}

/// The client keeps its queue.
impl From<Client> for Sender {
    fn from(client: Client) -> Self {
        Self::new(tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        }))
    }
}
