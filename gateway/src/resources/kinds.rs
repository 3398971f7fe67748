//! Kinds of objects that are views of a cluster's Secret: all are read, listed and watched alike.

use std::time::SystemTime;

use api::cluster_gateway::{self, ClusterGateway};
use api::cluster_name::ClusterName;
use api::health::Health;
use api::karmada::CLUSTERS;
use api::karmada_cluster::cluster::Cluster;
use api::list_options::Selectors;
use api::secret::ClusterSpec;
use api::served::{ObjectMeta, Served};
use api::status::Status;
use api::virtual_cluster::{LOCAL, VirtualCluster};

use crate::clusters::View;
use crate::error::Error;

/// A view of a Secret.
pub trait Kind: Clone + Send + Sync + 'static {
    /// Plural name of the resource.
    const RESOURCE: &'static str;

    type Object<'a>: Served;

    fn view(&self) -> &View;

    fn object<'a>(&self, cluster: &'a ClusterSpec, health: Health) -> Self::Object<'a>;

    /// The rest of an object that existed and can no longer be read.
    fn remnant(metadata: ObjectMeta<'_>) -> Self::Object<'_>;

    fn absent(name: &ClusterName) -> Error;

    /// The subject of watches without a hub.
    fn subject(&self) -> Subject;
}

/// `clustergateways`.
#[derive(Clone)]
pub struct Gateways(pub View);

/// Karmada's `clusters`.
#[derive(Clone)]
pub struct KarmadaClusters(pub View);

/// The kind of objects of a watch without a hub.
pub enum Subject {
    ClusterGateways(Gateways),
    KarmadaClusters(KarmadaClusters),
    VirtualClusters,
}

impl Kind for Gateways {
    const RESOURCE: &'static str = cluster_gateway::RESOURCE;

    type Object<'a> = ClusterGateway<'a>;

    fn view(&self) -> &View {
        &self.0
    }

    fn object<'a>(&self, cluster: &'a ClusterSpec, health: Health) -> ClusterGateway<'a> {
        self.0.show(cluster, health)
    }

    fn remnant(metadata: ObjectMeta<'_>) -> ClusterGateway<'_> {
        ClusterGateway::remnant(metadata)
    }

    fn absent(name: &ClusterName) -> Error {
        Error::NoSuchObject(name.clone())
    }

    fn subject(&self) -> Subject {
        Subject::ClusterGateways(self.clone())
    }
}

impl Kind for KarmadaClusters {
    const RESOURCE: &'static str = CLUSTERS;

    type Object<'a> = Cluster<'a>;

    fn view(&self) -> &View {
        &self.0
    }

    fn object<'a>(&self, cluster: &'a ClusterSpec, health: Health) -> Cluster<'a> {
        Cluster::new(cluster, &health, SystemTime::now())
    }

    fn remnant(metadata: ObjectMeta<'_>) -> Cluster<'_> {
        Cluster::remnant(metadata)
    }

    fn absent(name: &ClusterName) -> Error {
        Error::of_caller(Status::object_not_found(CLUSTERS, name.as_str()))
    }

    fn subject(&self) -> Subject {
        Subject::KarmadaClusters(self.clone())
    }
}

// === impl Subject ===

impl Subject {
    pub fn selects(&self, selectors: &Selectors, spec: &ClusterSpec) -> bool {
        match self {
            Self::ClusterGateways(_) | Self::KarmadaClusters(_) => selectors.matches(spec.name.as_str(), &spec.labels),
            Self::VirtualClusters if spec.name.as_str() == LOCAL => false,
            Self::VirtualClusters => selectors.matches(spec.name.as_str(), &VirtualCluster::of_spec(spec).labels),
        }
    }
}
