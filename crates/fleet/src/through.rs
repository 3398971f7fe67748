//! Reaches one cluster: the hub's client, with the cluster's path before each request's own.

use std::sync::Arc;
use std::task::{Context, Poll};

use api::cluster_name::ClusterName;
use api::path::has_dot_segment;
use api::{GROUP, VERSION};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::uri::PathAndQuery;
use http::{Request, Response, Uri};
use kube::Client;
use kube::client::Body;
use kube::core::request;
use tower::Service;

use crate::retry_after;
use crate::sender::Streamed;

/// Sends the requests for a cluster to the hub. One more client for one more cluster is a path and
/// a pointer: connections and TLS belong to the hub's client.
#[derive(Clone)]
pub struct Through {
    hub: Client,
    /// Path of the cluster's API, without a slash at its end.
    path: Arc<str>,
}

// === impl Through ===

impl Through {
    pub fn new(hub: Client, cluster: &ClusterName) -> Self {
        Self { hub, path: format!("/apis/{GROUP}/{VERSION}/clustergateways/{cluster}/proxy").into() }
    }

    /// The target on the hub. Refuses a target that could lead out of the cluster's path, however
    /// the servers behind would read it: a request for one cluster stays with that cluster.
    fn target(&self, uri: &Uri) -> Result<Uri, kube::Error> {
        let own = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        if !own.starts_with('/') || has_dot_segment(uri.path()) {
            let mistake = format!("the path {} does not lead to one place in a cluster", uri.path());
            return Err(kube::Error::BuildRequest(request::Error::Validation(mistake)));
        }
        let path = &self.path;
        format!("{path}{own}").parse().map_err(|error| kube::Error::HttpError(http::Error::from(error)))
    }
}

impl Service<Request<Body>> for Through {
    type Response = Response<Streamed>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Streamed>, kube::Error>>;

    /// Always ready: the hub's client waits for its own room when it gets a request.
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let target = self.target(request.uri());
        let hub = self.hub.clone();
        async move {
            *request.uri_mut() = target?;
            retry_after::into_status(hub.send(request).await?).await
        }
        .boxed()
    }
}
