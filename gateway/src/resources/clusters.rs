//! `clustergateways`, and Karmada's `clusters`: reads the hub's Secrets as these objects.
//!
//! Each read is one request to the hub with the reader's own parameters, so that versions, pages,
//! initial events and expiry have the hub's exact semantics, and the gateway stores nothing.
//! Without a hub, the response comes from memory.

use std::collections::HashSet;

use api::access::Verb;
use api::cluster_name::ClusterName;
use api::hub_object::{HubList, SecretObject};
use api::list_options::{ListOptions, WatchOptions};
use api::route::ClustersRoute;
use api::secret::{CREDENTIAL_TYPE_LABEL, SecretError};
use api::served::{Form, ListMeta};
use api::watch_event::EventWriter;
use auth::Permission;
use bytes::Bytes;
use http::{Request, Response};

use super::kinds::{Gateways, Kind};
use super::translate::Clusters;
use super::watch::{self, Flow, Watch as _};
use super::weight::{self, Weight};
use super::{ClustersRead, clusters_read, memory, ok, version_query};
use crate::body::ResponseBody;
use crate::clusters::{ClusterWithHealth, View};
use crate::error::{self, Error};
use crate::hub::{Cause, Collection, Hub, HubFailure};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get`, `list` and `watch` of `clustergateways`.
pub async fn serve(
    gateway: &RequestNeeds,
    permission: &Permission,
    route: &ClustersRoute,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    serve_as(&Gateways(gateway.view.clone()), gateway, permission, route, request).await
}

/// The same for another kind that is read from the same Secrets.
pub async fn serve_as<K: Kind>(
    kind: &K,
    gateway: &RequestNeeds,
    permission: &Permission,
    route: &ClustersRoute,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let (read, form) = clusters_read(route, request)?;
    let Some(hub) = &gateway.hub else {
        return memory::clusters(kind, gateway, permission.user(), read, form, request);
    };
    match read {
        ClustersRead::Get(name) => {
            let seen = get::<K>(hub, &gateway.view, name, &version_query(request.uri())).await?;
            Ok(ok(form.object(&kind.object(&seen.spec, seen.health))))
        }
        ClustersRead::List(options) => list(kind, &weight::asked_by(request, hub), &options, form).await.map(ok),
        ClustersRead::Watch(options) => {
            let flow = watch(kind, gateway, hub, permission, options, form, Weight::of(request)).await?;
            Ok(watch::response(gateway, request.method(), flow.stream()))
        }
    }
}

/// One cluster from its Secret.
async fn get<K: Kind>(hub: &Hub, view: &View, name: &ClusterName, query: &str) -> Result<ClusterWithHealth, Error> {
    let secret: SecretObject = parsed::<K, _>(Verb::Get, &secret::<K>(hub, name, query).await?)?;
    read::<K>(view, name, &secret)
}

/// Reads a Secret as a cluster.
pub fn read<K: Kind>(view: &View, name: &ClusterName, secret: &SecretObject) -> Result<ClusterWithHealth, Error> {
    view.read(secret).map_err(|error| match error {
        // Another Secret with this name, which is no cluster.
        SecretError::NoCredentialType => K::absent(name),
        unusable => error::Cause::Unconvertible(unusable.to_string().into()).at(name),
    })
}

/// The JSON of a Secret.
pub async fn secret<K: Kind>(hub: &Hub, name: &ClusterName, query: &str) -> Result<Bytes, Error> {
    hub.get(Collection::Secrets, name.as_str(), query).await.map_err(|failure| match failure.code() {
        Some(404) => K::absent(name),
        _ => Error::hub(failure, K::RESOURCE),
    })
}

/// Parses the hub's response.
pub fn parsed<K: Kind, T: serde::de::DeserializeOwned>(verb: Verb, json: &[u8]) -> Result<T, Error> {
    let unreadable = HubFailure { verb, collection: Collection::Secrets, cause: Cause::Unreadable };
    api::hub_object::parse(json).map_err(|_| Error::hub(unreadable, K::RESOURCE))
}

async fn list<K: Kind>(kind: &K, hub: &Hub, options: &ListOptions, form: Form) -> Result<Bytes, Error> {
    let query = options.to_hub(CREDENTIAL_TYPE_LABEL, true);
    let answer = hub.list(Collection::Secrets, &query).await.map_err(|failure| Error::hub(failure, K::RESOURCE))?;
    let HubList::<SecretObject> { metadata, items } = parsed::<K, _>(Verb::List, &answer)?;
    let selected = items.iter().filter(|secret| options.selectors.matches_name(&secret.metadata.name));
    let seen: Vec<ClusterWithHealth> = selected.filter_map(|secret| logged(kind.view(), secret)).collect();
    let objects: Vec<_> = seen.iter().map(|seen| kind.object(&seen.spec, seen.health.clone())).collect();
    let metadata = ListMeta {
        resource_version: &metadata.resource_version,
        next: metadata.next.as_deref().filter(|next| !next.is_empty()),
        remaining_item_count: metadata.remaining_item_count,
    };
    Ok(form.list(&objects, metadata))
}

/// Logs a Secret that cannot be read, because it must not make the whole list fail.
fn logged(view: &View, secret: &SecretObject) -> Option<ClusterWithHealth> {
    let read = view.read(secret);
    read.inspect_err(|error| tracing::debug!(cluster = secret.metadata.name, %error, "omitted from a list")).ok()
}

async fn watch<K: Kind>(
    kind: &K,
    gateway: &RequestNeeds,
    hub: &Hub,
    permission: &Permission,
    options: WatchOptions,
    form: Form,
    weight: Weight,
) -> Result<Flow<Clusters<K>>, Error> {
    let lifetime = watch::lifetime(options.timeout_seconds);
    let query = options.to_hub(CREDENTIAL_TYPE_LABEL, true, lifetime.as_secs());
    let watching = hub.watch(Some(permission.user().owner()), Collection::Secrets, &query).await;
    let watching = watching.map_err(|failure| Error::hub(failure, K::RESOURCE))?;
    // A watch that begins with the existing objects learns from the events which of them cannot be
    // shown.
    let unseen = if options.wants_initial_events() {
        HashSet::new()
    } else {
        gateway.clusters.snapshot().unconvertible().map(ToString::to_string).collect()
    };
    let translator = Clusters::new(EventWriter::new(form), kind.clone(), options, unseen);
    Ok(Flow::new(watching, translator, lifetime, weight))
}
