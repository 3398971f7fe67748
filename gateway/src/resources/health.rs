//! `clustergateways/health`: a cluster's reported health, stored in annotations of its Secret.
//!
//! Written by GET and PUT of the Secret, because the `ServiceAccount`s of existing installations
//! may `update` Secrets, but not `patch` them. The PUT requires the version that was read, so that
//! it never undoes another change.

use api::accept::Shape;
use api::access::Verb;
use api::cluster_gateway::RESOURCE;
use api::cluster_name::ClusterName;
use api::health_change::{self as change, Change, Refused};
use api::hub_object::SecretObject;
use api::route::{ClustersRoute, HealthAction};
use api::status::{Reason, Status};
use auth::Permission;
use http::{HeaderMap, Request, Response, StatusCode};

use super::clusters::{parsed, read, secret, serve as serve_clusters};
use super::kinds::Gateways;
use super::sent::{self, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, WriteOptions};
use super::{form_of, ok};
use crate::body::ResponseBody;
use crate::error::Error;
use crate::hub::Hub;
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// Longest object in a request, as in kube-apiserver (`--max-resource-write-bytes`). For patches
/// see [`change::LONGEST_PATCH`].
const LARGEST: usize = 3 << 20;
/// Most tries when other writers change the Secret in between. After these, the sender gets a
/// conflict.
const ATTEMPTS: usize = 6;

/// `get`, `update` and `patch` of `clustergateways/health`.
pub async fn serve(
    gateway: &RequestNeeds,
    permission: &Permission,
    cluster: ClusterName,
    action: HealthAction,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    if action == HealthAction::Get {
        return serve_clusters(gateway, permission, &ClustersRoute::Get(cluster), &request).await;
    }
    let Some(hub) = &gateway.hub else {
        return Err(refused(Status::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Reason::MethodNotAllowed,
            "this gateway runs without a hub, its clusters are files: write the health annotations there",
        )));
    };
    let form = form_of(Shape::Object, &request)?;
    let query = WriteOptions::read(request.uri().query())?.for_hub();
    let read_body = body_kind(action, request.headers())?;
    let limit = if action == HealthAction::Patch { change::LONGEST_PATCH } else { LARGEST };
    let body = sent::body(request, limit, &gateway.limits.reports, RESOURCE).await?;
    let _permit = gateway.limits.reports.writer().await.map_err(|failure| Error::hub(failure, RESOURCE))?;
    let change = read_body(&body.bytes).map_err(|error| refused(error.into()))?;
    let written = write(gateway, hub, &cluster, &change, &query).await?;
    let seen = read::<Gateways>(&gateway.view, &cluster, &written)?;
    Ok(ok(form.object(&gateway.view.show(&seen.spec, seen.health))))
}

async fn write(
    gateway: &RequestNeeds,
    hub: &Hub,
    cluster: &ClusterName,
    change: &Change,
    query: &str,
) -> Result<SecretObject, Error> {
    let mut attempts = 1;
    loop {
        let json = secret::<Gateways>(hub, cluster, "").await?;
        let current: SecretObject = parsed::<Gateways, _>(Verb::Get, &json)?;
        let seen = read::<Gateways>(&gateway.view, cluster, &current)?;
        let wanted = change.wanted(&seen.spec).map_err(|error| refused(error.into()))?;
        let body = wanted.health.annotate(&json).ok_or(Error::BadRequest("the Secret cannot be read"))?;
        match hub.update_secret(cluster.as_str(), query, body.into()).await {
            Ok(json) => return parsed::<Gateways, _>(Verb::Update, &json),
            Err(failure) => match failure.code() {
                Some(409) if wanted.pinned || attempts == ATTEMPTS => {
                    return Err(refused(Refused::Version(cluster.clone()).into()));
                }
                Some(409) => attempts += 1,
                Some(404) => return Err(Error::NoSuchObject(cluster.clone())),
                _ => return Err(Error::hub(failure, RESOURCE)),
            },
        }
    }
}

/// Reads a body.
type Reader = fn(&[u8]) -> Result<Change, Refused>;

/// Chooses how to read the body, by its media type.
fn body_kind(action: HealthAction, headers: &HeaderMap) -> Result<Reader, Error> {
    match (action, sent::media(headers).as_str()) {
        // No media type means JSON, as in kube-apiserver.
        (HealthAction::Update, "" | JSON) => Ok(Change::update),
        (HealthAction::Patch, MERGE_PATCH | STRATEGIC_PATCH) => Ok(Change::merge),
        (HealthAction::Patch, JSON_PATCH) => Ok(Change::operations),
        (HealthAction::Patch, _) => {
            Err(refused(change::unsupported(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH].join(", "))))
        }
        _ => Err(refused(change::unsupported(JSON))),
    }
}

fn refused(status: Status) -> Error {
    Error::of_caller(status)
}
