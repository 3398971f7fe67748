//! `virtualclusters`: all clusters, from Secrets and from Open Cluster Management, and the hub
//! itself.
//!
//! Both sources are read from the hub for each request. If both have a name, the Secret counts.

use api::cluster_name::ClusterName;
use api::hub_object::SecretObject;
use api::list_options::ListOptions;
use api::managed_cluster::ManagedCluster;
use api::route::ClustersRoute;
use api::served::{Form, ListMeta};
use api::virtual_cluster::{InvalidVirtualCluster, LOCAL, RESOURCE, VirtualCluster};
use auth::Permission;
use bytes::Bytes;
use http::{Request, Response};
use serde::de::DeserializeOwned;

use super::virtual_sources::{Sources, no_cluster, not_found, parsed};
use super::virtual_watch::VirtualWatch;
use super::watch::Watch as _;
use super::weight;
use super::{ClustersRead, clusters_read, memory, ok, version_query, watch};
use crate::body::ResponseBody;
use crate::clusters::managed::is_absence;
use crate::error::Error;
use crate::hub::{Collection, Hub};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get`, `list` and `watch` of `virtualclusters`.
pub async fn serve(
    gateway: &RequestNeeds,
    permission: &Permission,
    route: &ClustersRoute,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let (read, form) = clusters_read(route, request)?;
    let Some(hub) = &gateway.hub else {
        return memory::virtual_clusters(gateway, permission.user(), read, form, request);
    };
    match read {
        ClustersRead::Get(name) => Ok(ok(form.object(&get(hub, name, &version_query(request.uri())).await?))),
        ClustersRead::List(options) => list(gateway, &weight::asked_by(request, hub), options, form).await.map(ok),
        ClustersRead::Watch(options) => {
            let watch = VirtualWatch::begin(gateway, hub, permission, options, form, request).await?;
            Ok(watch::response(gateway, request.method(), watch.stream()))
        }
    }
}

async fn get(hub: &Hub, name: &ClusterName, query: &str) -> Result<VirtualCluster, Error> {
    if name.as_str() == LOCAL {
        return Ok(VirtualCluster::local());
    }
    let secret: Option<SecretObject> = one(hub, Collection::Secrets, name, query).await?;
    let invalid = match secret.map(|secret| VirtualCluster::of_secret(&secret.view())) {
        Some(Ok(cluster)) => return Ok(cluster),
        // Another Secret with this name, which is no cluster.
        None | Some(Err(InvalidVirtualCluster::NoCredentialType)) => None,
        Some(Err(error)) => Some(error),
    };
    let managed: Option<ManagedCluster> = one(hub, Collection::ManagedClusters, name, query).await?;
    let invalid = match managed.map(|managed| VirtualCluster::of_managed(&managed)) {
        Some(Ok(cluster)) => return Ok(cluster),
        Some(Err(error)) => Some(invalid.unwrap_or(error)),
        None => invalid,
    };
    Err(match invalid {
        None => not_found(name),
        // Agents create such objects, and lists omit them: the hub has not failed.
        Some(error @ InvalidVirtualCluster::NoClientConfig) => no_cluster(name, error),
        Some(error) => Error::Unusable(format!("cluster {name}: {error}")),
    })
}

/// An object of the hub, if it exists and the gateway may read it.
async fn one<T: DeserializeOwned>(
    hub: &Hub,
    collection: Collection,
    name: &ClusterName,
    query: &str,
) -> Result<Option<T>, Error> {
    match hub.get(collection, name.as_str(), query).await {
        Ok(json) => parsed(collection, &json).map(Some),
        Err(failure) if failure.code() == Some(404) => Ok(None),
        Err(failure) if collection == Collection::ManagedClusters && is_absence(&failure) => Ok(None),
        Err(failure) => Err(Error::hub(failure, RESOURCE)),
    }
}

async fn list(gateway: &RequestNeeds, hub: &Hub, options: ListOptions, form: Form) -> Result<Bytes, Error> {
    // Both lists are complete, because merged pages would not be a page.
    let options = ListOptions { limit: None, ..options };
    let selectors = options.clone().from_memory().map_err(Error::List)?;
    let mut sources = Sources::list(hub, &options).await?;
    if sources.has_managed()
        && let Some(known) = &gateway.managed
        && known.current().kind().is_none()
    {
        known.look();
    }
    let clusters = sources.merged(&selectors);
    Ok(form.list(&clusters, ListMeta { resource_version: sources.version(), ..ListMeta::default() }))
}
