//! Reaches one cluster: the hub's client, with the cluster's path before each request's own.

use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::path::has_dot_segment;
use api::{GROUP, VERSION};
use http::uri::PathAndQuery;
use http::{Request, Uri};
use kube::Client;
use kube::client::Body;
use kube::core::request;
use tower::service_fn;

use crate::retry_after;
use crate::sender::Sender;

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

    /// What sends so.
    pub fn sender(self) -> Sender {
        Sender::new(service_fn(move |mut request: Request<Body>| {
            let (target, hub) = (self.target(request.uri()), self.hub.clone());
            async move {
                *request.uri_mut() = target?;
                retry_after::into_status(hub.send(request).await?).await
            }
        }))
    }

    /// The target on the hub. A target that could lead out of the cluster's path is refused here,
    /// however the servers behind would read it: a request for one cluster stays with that cluster.
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
