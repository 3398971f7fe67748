//! The sources of `virtualclusters`: the hub's Secrets, and its `ManagedCluster`s.

use std::collections::BTreeMap;

use api::GROUP;
use api::cluster_name::ClusterName;
use api::hub_object::{self, HubList, SecretObject};
use api::list_options::{ListOptions, Selectors};
use api::managed_cluster::ManagedCluster;
use api::secret::CREDENTIAL_TYPE_LABEL;
use api::status::{Details, Reason, Status};
use api::virtual_cluster::{InvalidVirtualCluster, RESOURCE, VirtualCluster};
use http::StatusCode;
use serde::de::DeserializeOwned;

use crate::clusters::managed::is_absence;
use crate::error::Error;
use crate::hub::{Collection, Hub, HubFailure};

/// The hub's lists of both sources.
pub struct Sources {
    secrets: HubList<SecretObject>,
    managed: Option<Managed>,
}

/// Of the `ManagedCluster`s no more than is shown.
struct Managed {
    version: String,
    clusters: Vec<VirtualCluster>,
}

// === impl Managed ===

impl Managed {
    /// Page by page: there may be more of them than one answer has room for.
    async fn list(hub: &Hub, options: &ListOptions) -> Result<Self, HubFailure> {
        let mut clusters = Vec::new();
        let take = |page: &[u8]| {
            let HubList::<ManagedCluster> { metadata, items } = hub_object::parse(page)?;
            let before = clusters.len();
            clusters.extend(items.iter().filter_map(|managed| VirtualCluster::of_managed(managed).ok()));
            hub.kept(clusters.iter().skip(before).map(VirtualCluster::held).sum());
            Ok(metadata)
        };
        let version = hub.list_all(Collection::ManagedClusters, options, take).await?;
        Ok(Self { version, clusters })
    }
}

// === impl Sources ===

impl Sources {
    /// Lists both. `options` must have no paging.
    pub async fn list(hub: &Hub, options: &ListOptions) -> Result<Self, Error> {
        let secrets_query = options.to_hub(CREDENTIAL_TYPE_LABEL, false);
        let (secrets, managed) =
            tokio::join!(hub.list(Collection::Secrets, &secrets_query), Managed::list(hub, options));
        let secrets = secrets.map_err(|failure| Error::hub(failure, RESOURCE))?;
        let managed = match managed {
            Ok(managed) => Some(managed),
            Err(failure) if is_absence(&failure) => None,
            Err(failure) => return Err(Error::hub(failure, RESOURCE)),
        };
        Ok(Self { secrets: parsed(Collection::Secrets, &secrets)?, managed })
    }

    /// Whether the hub has `ManagedCluster`s.
    pub fn has_managed(&self) -> bool {
        self.managed.is_some()
    }

    pub fn secrets(&self) -> impl Iterator<Item = VirtualCluster> {
        self.secrets.items.iter().filter_map(|secret| VirtualCluster::of_secret(&secret.view()).ok())
    }

    /// Those of `ManagedCluster`s, once: there may be thousands, too many to copy.
    pub fn take_managed(&mut self) -> impl Iterator<Item = VirtualCluster> {
        self.managed.as_mut().map(|managed| std::mem::take(&mut managed.clusters)).into_iter().flatten()
    }

    /// A version from which a watch misses no change after either list. Both lists come from one
    /// store.
    pub fn version(&self) -> &str {
        let managed = self.managed.as_ref().map(|managed| &*managed.version);
        let versions = [Some(&*self.secrets.metadata.resource_version), managed].into_iter().flatten();
        versions.min_by_key(|version| version.parse::<u64>().unwrap_or(u64::MAX)).unwrap_or_default()
    }

    pub fn merged(&mut self, selectors: &Selectors) -> Vec<VirtualCluster> {
        let managed: Vec<_> = self.take_managed().collect();
        let all = std::iter::once(VirtualCluster::local()).chain(self.secrets()).chain(managed);
        let mut by_name = BTreeMap::new();
        for cluster in all {
            by_name.entry(cluster.name.clone()).or_insert(cluster);
        }
        sorted(by_name.into_values().filter(|cluster| cluster.is_selected(selectors)))
    }
}

/// Sorted as lists are.
pub fn sorted(clusters: impl IntoIterator<Item = VirtualCluster>) -> Vec<VirtualCluster> {
    let mut clusters: Vec<_> = clusters.into_iter().collect();
    clusters.sort_by(VirtualCluster::order);
    clusters
}

/// The failure for an object that does not exist.
pub fn not_found(name: &ClusterName) -> Error {
    Error::of_caller(Status::object_not_found(RESOURCE, name.as_str()))
}

/// The failure for an object that exists, but is no cluster yet.
pub fn no_cluster(name: &ClusterName, why: InvalidVirtualCluster) -> Error {
    let details =
        Details { name: name.to_string().into(), group: GROUP.into(), kind: RESOURCE.into(), ..Details::default() };
    let status = Status::new(StatusCode::NOT_FOUND, Reason::NotFound, format!("cluster {name}: {why}"));
    Error::of_caller(status.with_details(details))
}

/// Parses the hub's response.
pub fn parsed<T: DeserializeOwned>(collection: Collection, json: &[u8]) -> Result<T, Error> {
    hub_object::parse(json).map_err(|_| Error::hub(HubFailure::unreadable(collection), RESOURCE))
}
