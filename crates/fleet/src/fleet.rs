//! A hub's clusters, and clients for them.

use std::path::Path;
use std::time::Duration;

use api::cluster_name::ClusterName;
use hub::client::{HubClientError, unbounded_client};
use kube::{Client, Config};

use crate::cluster::Cluster;
use crate::each::{Each, Limits, each};
use crate::failure::Failure;
use crate::pages;
use crate::sender::Sender;
use crate::through::Through;

/// The clusters of one hub. Cheap to clone; all clones, and all clients made from them, share the
/// connections to the hub, their TLS settings and the caller's credential.
#[derive(Clone)]
pub struct Fleet {
    hub: Client,
    /// Time for one page of the list of clusters.
    page_within: Duration,
}

// === impl Fleet ===

impl Fleet {
    /// Uses a client of the hub. Every cluster's client has the same middleware (credential,
    /// impersonation, further headers, retries).
    ///
    /// Turn kube's own retries off (`Config::default_retry`): kube repeats a request that gets 503
    /// or 504 up to 15 times. For a member that is away, that is every request.
    pub fn new(hub: Client) -> Self {
        Self { hub, page_within: pages::WITHIN }
    }

    /// Sets the time for one page of the list of clusters. The default is a minute.
    #[must_use]
    pub fn listing_within(self, page_within: Duration) -> Self {
        Self { page_within, ..self }
    }

    /// Uses the hub of `kubeconfig`, or the one that this process runs in, with `user_agent`. Call
    /// this on the runtime that will drive the client. Connecting takes 10 s at most. A stream may
    /// be silent for as long as nothing happens, and logs may have any length. Callers must bound
    /// other requests, as [`each`] does in time and [`bounded`](crate::bounded) in bytes.
    pub async fn connect(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Self, HubClientError> {
        unbounded_client(kubeconfig, user_agent).await.map(Self::new)
    }

    /// A client of the hub itself.
    pub fn hub(&self) -> &Client {
        &self.hub
    }

    /// The clusters whose labels match `selector` (Kubernetes syntax; empty for all), in the hub's
    /// order, which is by name. Clusters that a gateway cannot use are left out.
    ///
    /// The Go cluster-gateway does not select: with it, a selector costs one more list and needs
    /// the verb `list` on `virtualclusters`.
    ///
    /// Fails if a page takes longer than [`Fleet::listing_within`], and beyond [`pages::MOST`]
    /// pages.
    pub async fn clusters(&self, selector: &str) -> Result<Vec<Cluster>, Failure> {
        pages::read(&self.hub, selector, self.page_within).await
    }

    /// A client for the cluster's API, through the gateway. Everything that kube's clients do
    /// works, including watches, logs and upgrades.
    ///
    /// It needs no connection of its own, but kube makes a task and a queue of about 10 KiB for any
    /// client: create it when you use it, and keep only names.
    pub fn client(&self, cluster: &ClusterName) -> Client {
        self.sender(cluster).client(self.hub.default_namespace()).with_valid_until(*self.hub.valid_until())
    }

    /// Like [`Fleet::client`], without kube's queue, for requests built by hand.
    pub fn sender(&self, cluster: &ClusterName) -> Sender {
        Through::new(self.hub.clone(), cluster).sender()
    }

    /// Runs `run` with a client for each of `clusters`: see [`each`].
    pub fn each<'a, T, E, F, R>(
        &self,
        clusters: impl IntoIterator<Item = ClusterName>,
        limits: Limits,
        mut run: F,
    ) -> Each<'a, T>
    where
        F: FnMut(ClusterName, Client) -> R + Send + 'a,
        R: Future<Output = Result<T, E>> + Send + 'a,
        E: Into<Failure>,
        T: Send + 'a,
    {
        let fleet = self.clone();
        each(clusters, limits, move |cluster| {
            let client = fleet.client(&cluster);
            run(cluster, client)
        })
    }
}

impl TryFrom<Config> for Fleet {
    type Error = kube::Error;

    /// The fleet repeats no request on its own.
    fn try_from(mut config: Config) -> Result<Self, kube::Error> {
        config.default_retry = false;
        Client::try_from(config).map(Self::new)
    }
}

#[cfg(test)]
mod tests;
