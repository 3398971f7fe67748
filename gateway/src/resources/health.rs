//! `clustergateways/health`: what was reported of a cluster, kept in the annotations of its Secret.
//!
//! Written by GET and PUT of the Secret, since the `ServiceAccount`s of existing installations may
//! `update` Secrets and not `patch` them. The version of the Secret read is the one replaced, so
//! that no other change of it is ever undone.

use std::time::Duration;

use api::accept::Shape;
use api::cluster_gateway::RESOURCE;
use api::cluster_name::ClusterName;
use api::health_change::{self as change, Change, Refused};
use api::hub_object::SecretObject;
use api::route::{ClustersRoute, HealthAction};
use api::status::{Reason, Status};
use auth::Permit;
use bytes::{Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::clusters::{parsed, read, secret, serve as serve_clusters};
use super::weight::Weight;
use super::{asked, ok};
use crate::body::ResponseBody;
use crate::error::Error;
use crate::hub::{Hub, HubFailure, Verb};
use crate::limits::reports::{self, Permits};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// Longest object sent, as kube-apiserver's (`--max-resource-write-bytes`). Of patches see
/// [`change::LONGEST_PATCH`].
const LARGEST: usize = 3 << 20;
/// A body that is not here by then never comes.
const WITHIN: Duration = Duration::from_secs(30);
/// Writes of others that may come in between before the sender is told.
const ATTEMPTS: usize = 6;

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";

/// `get`, `update` and `patch` of `clustergateways/health`.
pub async fn serve(
    gateway: &RequestNeeds,
    permit: &Permit,
    cluster: ClusterName,
    action: HealthAction,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    if action == HealthAction::Get {
        return serve_clusters(gateway, permit, &ClustersRoute::Get(cluster), &request).await;
    }
    let Some(hub) = &gateway.hub else {
        return Err(refused(Status::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Reason::MethodNotAllowed,
            "this gateway runs without a hub, its clusters are files: write the health annotations there",
        )));
    };
    let form = asked::form_of(Shape::Object, &request)?;
    let query = write_query(request.uri().query())?;
    let read_body = body_kind(action, request.headers())?;
    let limit = if action == HealthAction::Patch { change::LONGEST_PATCH } else { LARGEST };
    let body = body(request, limit, &gateway.reports).await?;
    let _permit = gateway.reports.writer().await.map_err(busy)?;
    let change = read_body(&body.bytes).map_err(|error| refused(error.into()))?;
    let written = write(gateway, hub, &cluster, &change, &query).await?;
    let seen = read(&gateway.view, &cluster, &written)?;
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
        let json = secret(hub, cluster, "").await?;
        let current: SecretObject = parsed(Verb::Get, &json)?;
        let seen = read(&gateway.view, cluster, &current)?;
        let wanted = change.wanted(&seen.spec).map_err(|error| refused(error.into()))?;
        let body = wanted.health.annotate(&json).ok_or(Error::BadRequest("the Secret cannot be read"))?;
        match hub.update_secret(cluster.as_str(), query, body.into()).await {
            Ok(json) => return parsed(Verb::Update, &json),
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

/// The parameters of the write, for the hub.
fn write_query(query: Option<&str>) -> Result<String, Error> {
    let mut kept = Vec::new();
    for (key, value) in api::query::pairs(query.unwrap_or_default()) {
        match (&*key, &*value) {
            ("dryRun", "All") => kept.push("dryRun=All".to_owned()),
            ("dryRun", _) => return Err(Error::BadRequest("dryRun must be All")),
            ("fieldManager", "") => {}
            ("fieldManager", manager) if manager.len() <= 128 => {
                kept.push(format!("fieldManager={}", utf8_percent_encode(manager, NON_ALPHANUMERIC)));
            }
            ("fieldManager", _) => return Err(Error::BadRequest("fieldManager must be at most 128 characters")),
            _ => {}
        }
    }
    Ok(kept.join("&"))
}

/// Reads a body.
type Reader = fn(&[u8]) -> Result<Change, Refused>;

/// How the body is to be read, by its media type.
fn body_kind(action: HealthAction, headers: &HeaderMap) -> Result<Reader, Error> {
    let text = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match (action, media.as_str()) {
        // Nothing said means JSON, as in kube-apiserver.
        (HealthAction::Update, "" | JSON) => Ok(Change::update),
        (HealthAction::Patch, MERGE_PATCH | STRATEGIC_PATCH) => Ok(Change::merge),
        (HealthAction::Patch, JSON_PATCH) => Ok(Change::operations),
        (HealthAction::Patch, _) => {
            Err(refused(change::unsupported(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH].join(", "))))
        }
        _ => Err(refused(change::unsupported(JSON))),
    }
}

/// A body, its permit if it is a long one, and what it counts for.
struct Body {
    bytes: Bytes,
    _permit: Option<OwnedSemaphorePermit>,
    _weight: Weight,
}

async fn body(request: Request<RequestBody>, limit: usize, permits: &Permits) -> Result<Body, Error> {
    let weight = Weight::of(&request);
    match timeout(WITHIN, collect(request.into_body(), limit, permits, weight)).await {
        Ok(body) => body,
        Err(_) => Err(Error::BadRequest("the body did not arrive in time")),
    }
}

async fn collect(mut body: RequestBody, limit: usize, permits: &Permits, mut weight: Weight) -> Result<Body, Error> {
    let (mut bytes, mut permit) = (BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Error::BadRequest("the body was cut off"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = bytes.len() + data.len();
        if length > limit {
            return Err(refused(Status::too_large(limit)));
        }
        if length > reports::SHORT && permit.is_none() {
            permit = Some(permits.long_body().map_err(busy)?);
        }
        bytes.extend_from_slice(&data);
        weight.set(bytes.capacity());
    }
    Ok(Body { bytes: bytes.freeze(), _permit: permit, _weight: weight })
}

fn busy(failure: HubFailure) -> Error {
    Error::hub(failure, RESOURCE)
}

fn refused(status: Status) -> Error {
    Error::Status(Box::new(status))
}
