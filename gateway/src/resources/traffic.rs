//! `clustergateways/traffic`: what this replica counted for a cluster, and its last failures there.

use api::accept::Shape;
use api::cluster_name::ClusterName;
use api::traffic::ClusterTraffic;
use auth::Permit;
use http::{Request, Response};

use super::{asked, ok};
use crate::body::ResponseBody;
use crate::error::Error;
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get` of `clustergateways/traffic`. Refuses those who accept no JSON.
pub async fn serve(
    gateway: &RequestNeeds,
    _permit: &Permit,
    cluster: &ClusterName,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    asked::form_of(Shape::Object, request)?;
    let found = gateway.cluster(cluster).await.map_err(|error| Error::lookup(cluster, error))?;
    Ok(ok(ClusterTraffic::new(cluster, found.metrics().traffic()).to_json()))
}
