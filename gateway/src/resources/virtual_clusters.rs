//! `virtualclusters`: every cluster there is, from Secrets and from Open Cluster Management, and the hub itself.
//!
//! Both sources are read from the hub at each request. Where one name is in both, the Secret counts.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::hub_object::{HubList, SecretObject};
use api::list_options::{ListOptions, Selectors, WatchOptions};
use api::managed_cluster::ManagedCluster;
use api::route::ClustersRoute;
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::served::{Form, ListMeta};
use api::status::Status;
use api::virtual_cluster::{InvalidVirtualCluster, LOCAL, RESOURCE, VirtualCluster};
use auth::Permit;
use bytes::Bytes;
use http::{Request, Response};
use serde::de::DeserializeOwned;

use super::virtual_watch::VirtualWatch;
use super::{asked, memory, ok, watch};
use crate::body::ResponseBody;
use crate::clusters::managed::is_absence;
use crate::error::Error;
use crate::hub::{Collection, Hub, HubFailure};
use crate::needs::RequestNeeds;
use crate::request_body::RequestBody;

/// `get`, `list` and `watch`.
pub async fn serve(
    gateway: &RequestNeeds,
    permit: &Permit,
    route: &ClustersRoute,
    request: &Request<RequestBody>,
) -> Result<Response<ResponseBody>, Error> {
    let form = asked::form(route, request)?;
    let query = request.uri().query();
    match (route, &gateway.hub) {
        (ClustersRoute::Get(name), Some(hub)) => {
            Ok(ok(form.object(&get(hub, name, &asked::version(request.uri())).await?)))
        }
        (ClustersRoute::List, Some(hub)) => {
            let options = ListOptions::from_query(query).map_err(Error::List)?;
            list(gateway, hub, options, form).await.map(ok)
        }
        (ClustersRoute::Watch, Some(hub)) => {
            let options = WatchOptions::from_query(query).map_err(Error::List)?;
            let watch = VirtualWatch::begin(gateway, hub, permit, options, form).await?;
            Ok(watch::response(gateway, request.method(), watch.stream()))
        }
        (route, None) => memory::virtual_clusters(gateway, route, query, form, request.method()),
    }
}

/// A refusal about one object.
pub fn not_found(name: &ClusterName) -> Error {
    Error::Status(Box::new(Status::object_not_found(RESOURCE, name.as_str())))
}

async fn get(hub: &Hub, name: &ClusterName, query: &str) -> Result<VirtualCluster, Error> {
    if name.as_str() == LOCAL {
        return Ok(VirtualCluster::local());
    }
    let secret: Option<SecretObject> = one(hub, Collection::Secrets, name, query).await?;
    let invalid = match secret.map(|secret| VirtualCluster::of_secret(&secret.view())) {
        Some(Ok(cluster)) => return Ok(cluster),
        // Some Secret of that name: nobody called it a cluster.
        None | Some(Err(InvalidVirtualCluster::NoCredentialType)) => None,
        Some(Err(error)) => Some(error),
    };
    let managed: Option<ManagedCluster> = one(hub, Collection::ManagedClusters, name, query).await?;
    let invalid = match managed.map(|managed| VirtualCluster::of_managed(&managed)) {
        Some(Ok(cluster)) => return Ok(cluster),
        Some(Err(error)) => Some(invalid.unwrap_or(error)),
        None => invalid,
    };
    Err(invalid.map_or_else(
        || not_found(name),
        |error| Error::Status(Box::new(Status::internal_error(&format!("cluster {name}: {error}")))),
    ))
}

/// An object of the hub, if there is one that we may see.
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

fn parsed<T: DeserializeOwned>(collection: Collection, json: &[u8]) -> Result<T, Error> {
    api::hub_object::parse(json).map_err(|_| Error::hub(HubFailure::unreadable(collection), RESOURCE))
}

async fn list(gateway: &RequestNeeds, hub: &Hub, options: ListOptions, form: Form) -> Result<Bytes, Error> {
    // Both lists are whole: what is merged of pages is no page.
    let options = ListOptions { limit: None, ..options };
    let selectors = options.clone().from_memory().map_err(Error::List)?;
    let sources = Sources::list(hub, &options).await?;
    if sources.managed.is_some()
        && let Some(known) = &gateway.managed
        && known.current().kind().is_none()
    {
        known.look();
    }
    let clusters = sources.merged(&selectors);
    Ok(form.list(&clusters, ListMeta { resource_version: sources.version(), ..ListMeta::default() }))
}

/// All that clusters are made of, as the hub has it.
pub struct Sources {
    secrets: HubList<SecretObject>,
    managed: Option<HubList<ManagedCluster>>,
}

// === impl Sources ===

impl Sources {
    /// `options` without what belongs to pages.
    pub async fn list(hub: &Hub, options: &ListOptions) -> Result<Self, Error> {
        let (secrets_query, managed_query) = (options.to_hub(CREDENTIAL_TYPE_LABEL, false), options.to_hub("", false));
        let (secrets, managed) = tokio::join!(
            hub.list(Collection::Secrets, &secrets_query),
            hub.list(Collection::ManagedClusters, &managed_query),
        );
        let secrets = secrets.map_err(|failure| Error::hub(failure, RESOURCE))?;
        let managed = match managed {
            Ok(json) => Some(parsed(Collection::ManagedClusters, &json)?),
            Err(failure) if is_absence(&failure) => None,
            Err(failure) => return Err(Error::hub(failure, RESOURCE)),
        };
        Ok(Self { secrets: parsed(Collection::Secrets, &secrets)?, managed })
    }

    pub fn secrets(&self) -> impl Iterator<Item = VirtualCluster> {
        self.secrets.items.iter().filter_map(|secret| VirtualCluster::of_secret(&secret.view()).ok())
    }

    pub fn managed(&self) -> impl Iterator<Item = VirtualCluster> {
        let managed = self.managed.iter().flat_map(|list| &list.items);
        managed.filter_map(|managed| VirtualCluster::of_managed(managed).ok())
    }

    /// The version from which nothing that came later than any of the lists is missed. All are of one store.
    fn version(&self) -> &str {
        let managed = self.managed.as_ref().map(|list| &list.metadata);
        let versions = [Some(&self.secrets.metadata), managed].into_iter().flatten();
        let versions = versions.map(|metadata| metadata.resource_version.as_str());
        versions.min_by_key(|version| version.parse::<u64>().unwrap_or(u64::MAX)).unwrap_or_default()
    }

    fn merged(&self, selectors: &Selectors) -> Vec<VirtualCluster> {
        let all = std::iter::once(VirtualCluster::local()).chain(self.secrets()).chain(self.managed());
        let mut by_name = BTreeMap::new();
        for cluster in all {
            by_name.entry(cluster.name.clone()).or_insert(cluster);
        }
        sorted(by_name.into_values().filter(|cluster| selectors.matches(&cluster.name, &cluster.labels)))
    }
}

/// In the order of lists.
pub fn sorted(clusters: impl IntoIterator<Item = VirtualCluster>) -> Vec<VirtualCluster> {
    let mut clusters: Vec<_> = clusters.into_iter().collect();
    clusters.sort_by(VirtualCluster::order);
    clusters
}
