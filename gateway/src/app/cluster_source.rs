//! The source of the registry of clusters: a hub, or files.

use std::sync::Arc;

use kube::Client;
use telemetry::readiness::Readiness;
use tokio::runtime::Handle;

use crate::clusters::files::{self, Files};
use crate::clusters::managed::{self, ManagedClusters, Purpose};
use crate::clusters::{Registry, watch};
use crate::hub::Hub;

/// A source that was not started yet.
pub enum ClusterSource {
    Hub(Box<HubSource>),
    Files(Files),
}

/// The Secrets of a hub.
pub struct HubSource {
    pub client: Client,
    pub namespace: String,
    pub hub: Hub,
    /// Whether `ManagedCluster`s decide where clusters are.
    pub ocm: bool,
}

/// The hub as requests need it; empty without one.
#[derive(Default)]
pub struct HubContext {
    pub hub: Option<Hub>,
    pub managed: Option<Arc<ManagedClusters>>,
    /// The same, if they decide where clusters are.
    pub located_by: Option<Arc<ManagedClusters>>,
}

// === impl ClusterSource ===

impl ClusterSource {
    /// Fills `registry` from now on. Blocks `readiness` until everything that clusters depend on is
    /// known.
    pub fn start(self, control: &Handle, registry: Registry, readiness: &Readiness) -> HubContext {
        match self {
            Self::Hub(from) => {
                let HubSource { client, namespace, hub, ocm } = *from;
                let managed = Arc::new(ManagedClusters::default());
                let located_by = ocm.then(|| Arc::clone(&managed));
                let unknown = || Some(readiness.block("managedclusters"));
                let purpose = if ocm { Purpose::Location(unknown()) } else { Purpose::Display };
                control.spawn(managed::run(hub.clone(), Arc::clone(&managed), purpose));
                control.spawn(watch::run(client, namespace, registry.located_by(located_by.clone())));
                HubContext { hub: Some(hub), managed: Some(managed), located_by }
            }
            Self::Files(files) => {
                control.spawn(files::run(files, registry.stamping()));
                HubContext::default()
            }
        }
    }
}
