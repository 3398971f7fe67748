//! Karmada's `clusters`: reads and writes cluster Secrets as Karmada's objects.
//!
//! A write changes the Secret with the gateway's own permissions, which the operator may grant or
//! not. Fields of a Cluster that have no place in the Secret are stored in one annotation.

mod registration;
mod written;

use std::time::Duration;

use api::accept::Shape;
use api::access::Verb;
use api::cluster_name::ClusterName;
use api::health_change::unsupported;
use api::hub_object::SecretObject;
use api::karmada::{CLUSTERS, CREATED_ANNOTATION};
use api::karmada_cluster::change::{DesiredCluster, LONGEST, Part, Refused, Sent};
use api::karmada_cluster::cluster::uid;
use api::route::KarmadaRoute;
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::Form;
use api::status::{Reason, Status};
use auth::Permission;
use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use register::claims::FIELD_MANAGER;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::clusters::{parsed, read, secret, serve_as};
use super::kinds::{KarmadaClusters, Kind};
use super::sent::{self, JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, WriteOptions};
use super::{form_of, ok};
use crate::body::ResponseBody;
use crate::error::Error;
use crate::headers;
use crate::hub::Hub;
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// Most tries when other writers change the Secret in between. After these, the sender gets a
/// conflict.
const ATTEMPTS: usize = 6;
/// Most warnings in one response; each names a field.
const MOST_WARNINGS: usize = 16;
/// Longest warning, in bytes of text.
const LONGEST_WARNED: usize = 256;
/// Timeout of a whole write, including its body.
const WITHIN: Duration = Duration::from_mins(1);

/// All requests for `clusters`.
pub async fn serve(
    gateway: &RequestNeeds,
    permission: &Permission,
    route: &KarmadaRoute,
    request: Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    if let KarmadaRoute::Read(route) = route {
        return serve_as(&KarmadaClusters(gateway.view.clone()), gateway, permission, route, &request).await;
    }
    let Some(hub) = &gateway.hub else {
        return Err(refused(Status::new(
            StatusCode::METHOD_NOT_ALLOWED,
            Reason::MethodNotAllowed,
            "this gateway runs without a hub, its clusters are files: change them there",
        )));
    };
    let write = Write::of(gateway, hub, permission, &request)?;
    let _permit = gateway.limits.writes.enter(permission.user())?;
    match timeout(WITHIN, write.done(route, request)).await {
        Ok(done) => done,
        Err(_) => Err(Error::LateWrite(WITHIN.as_secs())),
    }
}

/// How to treat fields that the type does not have (`fieldValidation`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strictness {
    Ignore,
    Warn,
    Strict,
}

/// A write with its parameters.
struct Write<'a> {
    gateway: &'a RequestNeeds,
    hub: &'a Hub,
    permission: &'a Permission,
    /// The query for the hub.
    query: String,
    strictness: Strictness,
    form: Form,
}

/// `metav1.DeleteOptions`. The hub's garbage collector decides about dependents.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeleteOptions {
    preconditions: Option<Preconditions>,
    dry_run: Option<Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

// === impl Write ===

impl<'a> Write<'a> {
    fn of(
        gateway: &'a RequestNeeds,
        hub: &'a Hub,
        permission: &'a Permission,
        request: &Request<RequestBody>,
    ) -> Result<Self, Error> {
        let options = WriteOptions::read(request.uri().query())?;
        if options.field_manager == FIELD_MANAGER {
            return Err(Error::BadRequest("this fieldManager is the controllers' own"));
        }
        let (query, strictness) = (options.for_hub(), Strictness::of(&options.field_validation)?);
        Ok(Self { gateway, hub, permission, query, strictness, form: form_of(Shape::Object, request)? })
    }

    async fn done(&self, route: &KarmadaRoute, request: Request<RequestBody>) -> Result<Response<ResponseBody>, Error> {
        match route {
            KarmadaRoute::Change { cluster, part, is_patch } => self.change(cluster, *part, *is_patch, request).await,
            KarmadaRoute::Delete(cluster) => self.delete(cluster, request).await,
            _ => self.create(request).await,
        }
    }

    async fn create(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, Error> {
        let read_body = body_kind(false, request.headers())?;
        let body = self.body(request).await?;
        let _permit = self.gateway.limits.writers.writer().await.map_err(hub)?;
        let wanted = read_body(&body.bytes).and_then(|sent| sent.created(&api::time::now())).map_err(status)?;
        self.strictness.check(&wanted)?;
        let name = self.gateway.settings.cluster_names.name(None, &wanted.name);
        name.map_err(|why| status(registration::misnamed(&wanted.name, why)))?;
        let registered = registration::of(self.gateway, self.hub, self.permission.user(), &wanted).await?;
        let document = written::new(&self.gateway.view, self.hub.namespace(), &wanted, &registered)?;
        let created = self.hub.create_secret(&self.query, document).await.map_err(hub)?;
        tracing::info!(cluster = wanted.name, user = self.permission.user().name, "registered through Karmada's API");
        let mut response = self.answer(&wanted, Verb::Create, &created)?;
        *response.status_mut() = StatusCode::CREATED;
        Ok(response)
    }

    async fn change(
        &self,
        cluster: &ClusterName,
        part: Part,
        is_patch: bool,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Error> {
        let read_body = body_kind(is_patch, request.headers())?;
        let body = self.body(request).await?;
        let _permit = self.gateway.limits.writers.writer().await.map_err(hub)?;
        let sent = read_body(&body.bytes).map_err(status)?;
        let mut attempts = 1;
        loop {
            let (wanted, document) = self.changed(cluster, &sent, part).await?;
            match self.hub.update_secret(cluster.as_str(), &self.query, document).await {
                Ok(json) => return self.answer(&wanted, Verb::Update, &json),
                Err(failure) => match failure.code() {
                    Some(409) if wanted.pinned || attempts == ATTEMPTS => {
                        return Err(status(Refused::Version(cluster.to_string())));
                    }
                    Some(409) => attempts += 1,
                    Some(404) => return Err(KarmadaClusters::absent(cluster)),
                    _ => return Err(hub(failure)),
                },
            }
        }
    }

    /// The wanted state of `cluster`, and its Secret for that.
    async fn changed(
        &self,
        cluster: &ClusterName,
        sent: &Sent,
        part: Part,
    ) -> Result<(DesiredCluster, Vec<u8>), Error> {
        let view = &self.gateway.view;
        let json = secret::<KarmadaClusters>(self.hub, cluster, "").await?;
        let current: SecretObject = parsed::<KarmadaClusters, _>(Verb::Get, &json)?;
        let seen = read::<KarmadaClusters>(view, cluster, &current)?;
        let shown = KarmadaClusters(view.clone());
        let shown = shown.object(&seen.spec, seen.health);
        let wanted = sent.changed(&shown, part, &api::time::now()).map_err(status)?;
        self.strictness.check(&wanted)?;
        let registered = if part == Part::Whole && wanted.spec.reaches_otherwise(&shown.spec) {
            registration::may_move(&seen.spec, &wanted, &shown).map_err(status)?;
            if !current.metadata.annotations.contains_key(CREATED_ANNOTATION) {
                registration::review_move(self.gateway, self.hub, self.permission.user(), cluster.as_str()).await?;
            }
            Some(registration::of(self.gateway, self.hub, self.permission.user(), &wanted).await?)
        } else {
            None
        };
        let document = written::over(view, self.hub.namespace(), &json, &shown, &wanted, registered.as_ref())?;
        Ok((wanted, document))
    }

    async fn delete(
        &self,
        cluster: &ClusterName,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Error> {
        let body = self.body(request).await?;
        let _permit = self.gateway.limits.writers.writer().await.map_err(hub)?;
        let options: DeleteOptions = match body.bytes.trim_ascii() {
            [] => DeleteOptions::default(),
            json => serde_json::from_slice(json)
                .map_err(|_| Error::BadRequest("the body is not valid JSON of DeleteOptions"))?,
        };
        let query = match options.dry_run.as_deref() {
            Some([all]) if all == "All" => "dryRun=All",
            None | Some([]) => &self.query,
            Some(_) => return Err(Error::BadRequest("dryRun must be All")),
        };
        let json = secret::<KarmadaClusters>(self.hub, cluster, "").await?;
        let SecretObject { metadata, .. } = parsed::<KarmadaClusters, _>(Verb::Get, &json)?;
        if !metadata.labels.contains_key(CREDENTIAL_TYPE_LABEL) {
            return Err(KarmadaClusters::absent(cluster));
        }
        let Preconditions { uid: wanted, resource_version } = options.preconditions.unwrap_or_default();
        if wanted.is_some_and(|wanted| wanted != uid(&metadata.uid)) {
            return Err(status(Refused::Uid(cluster.to_string())));
        }
        let preconditions = json!({"uid": metadata.uid, "resourceVersion": resource_version});
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions});
        match self.hub.delete_secret(cluster.as_str(), query, options.to_string().into_bytes()).await {
            Ok(_) => {}
            Err(failure) if failure.code() == Some(404) => return Err(KarmadaClusters::absent(cluster)),
            Err(failure) if failure.code() == Some(409) => {
                return Err(status(Refused::Version(cluster.to_string())));
            }
            Err(failure) => return Err(hub(failure)),
        }
        tracing::info!(cluster = cluster.as_str(), user = self.permission.user().name, "removed through Karmada's API");
        Ok(ok(success(cluster, &uid(&metadata.uid))))
    }

    async fn body(&self, request: Request<RequestBody>) -> Result<sent::Body, Error> {
        sent::body(request, LONGEST, &self.gateway.limits.writers, CLUSTERS).await
    }

    /// The object in the Secret that the hub returned.
    fn answer(&self, wanted: &DesiredCluster, verb: Verb, json: &[u8]) -> Result<Response<ResponseBody>, Error> {
        let secret: SecretObject = parsed::<KarmadaClusters, _>(verb, json)?;
        let name = ClusterName::parse(&wanted.name).map_err(|_| Error::BadRequest("the name is not a cluster name"))?;
        let seen = read::<KarmadaClusters>(&self.gateway.view, &name, &secret)?;
        let kind = KarmadaClusters(self.gateway.view.clone());
        let mut response = ok(self.form.object(&kind.object(&seen.spec, seen.health)));
        if self.strictness == Strictness::Warn {
            warn(response.headers_mut(), &wanted.unknown);
        }
        Ok(response)
    }
}

/// Reads a body.
type Reader = fn(&[u8]) -> Result<Sent, Refused>;

/// Chooses how to read the body, by its media type. Server-side apply is not served, as for
/// `clustergateways/health`: the managers of fields are not stored here.
fn body_kind(is_patch: bool, headers: &HeaderMap) -> Result<Reader, Error> {
    match (is_patch, sent::media(headers).as_str()) {
        // No media type means JSON, as in kube-apiserver.
        (false, "" | JSON) => Ok(Sent::object),
        // The type has no merge keys, so both kinds of patch replace lists.
        (true, MERGE_PATCH | STRATEGIC_PATCH) => Ok(Sent::merge),
        (true, JSON_PATCH) => Ok(Sent::operations),
        (true, _) => Err(refused(unsupported(&[JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH].join(", ")))),
        (false, _) => Err(refused(unsupported(JSON))),
    }
}

fn success(cluster: &ClusterName, uid: &str) -> Bytes {
    let details = json!({"name": cluster.as_str(), "group": api::karmada::GROUP, "kind": CLUSTERS, "uid": uid});
    let status: Value =
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details});
    status.to_string().into()
}

/// Warns of unknown fields, like `k8s.io/apiserver/pkg/endpoints/handlers`.
fn warn(headers: &mut HeaderMap, unknown: &[String]) {
    for field in unknown.iter().take(MOST_WARNINGS) {
        headers::warn(headers, &format!("unknown field \"{field}\""), LONGEST_WARNED);
    }
}

fn hub(failure: crate::hub::HubFailure) -> Error {
    Error::hub(failure, CLUSTERS)
}

fn status(error: Refused) -> Error {
    refused(error.into())
}

fn refused(status: Status) -> Error {
    Error::of_caller(status)
}

// === impl Strictness ===

impl Strictness {
    fn of(field_validation: &str) -> Result<Self, Error> {
        match field_validation {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            _ => Err(Error::BadRequest("fieldValidation must be Ignore, Warn or Strict")),
        }
    }

    fn check(self, wanted: &DesiredCluster) -> Result<(), Error> {
        if self == Self::Strict && !wanted.unknown.is_empty() {
            return Err(status(Refused::Strict(wanted.unknown.clone())));
        }
        Ok(())
    }
}
