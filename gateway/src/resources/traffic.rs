//! `clustergateways/traffic`: this replica's counters for a cluster, and its last failures.

use std::sync::Arc;

use api::accept::Shape;
use api::cluster_name::ClusterName;
use api::traffic::ClusterTraffic;
use auth::Permission;
use http::{Request, Response};

use super::{form_of, ok};
use crate::body::ResponseBody;
use crate::clusters::LookupError;
use crate::error::Error;
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get` of `clustergateways/traffic`. Refuses clients that accept no JSON.
pub async fn serve(
    gateway: &RequestNeeds,
    _permission: &Permission,
    cluster: &ClusterName,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    form_of(Shape::Object, request)?;
    let metrics = match (gateway.cluster(cluster).await, gateway.clusters.metrics(cluster)) {
        (Ok(found), _) => Arc::clone(found.metrics()),
        // Requests for it fail, and count.
        (Err(LookupError::Invalid(_)), Some(metrics)) => metrics,
        (Err(error), _) => return Err(Error::lookup(cluster, error)),
    };
    Ok(ok(ClusterTraffic::new(cluster, metrics.traffic()).to_json()))
}
