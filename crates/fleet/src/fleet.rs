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

/// The clusters of one hub. Cheap to clone; all clones, and all clients made of them, share the
/// connections to the hub, their TLS settings and the caller's credential.
#[derive(Clone)]
pub struct Fleet {
    hub: Client,
    /// For one page of the list of clusters.
    page_within: Duration,
}

// === impl Fleet ===

impl Fleet {
    /// With a client of the hub. Its middleware (credential, impersonation, further headers,
    /// repetition) is that of every cluster's client too.
    ///
    /// Switch kube's own repetition off (`Config::default_retry`): it repeats what is answered 503
    /// or 504, up to 15 times, which for a member that is away is every request.
    pub fn new(hub: Client) -> Self {
        Self { hub, page_within: pages::WITHIN }
    }

    /// With another time for one page of the list of clusters than a minute.
    #[must_use]
    pub fn listing_within(self, page_within: Duration) -> Self {
        Self { page_within, ..self }
    }

    /// With the hub of `kubeconfig`, or the one this process runs in, under the name `user_agent`.
    /// Must be called on the runtime that will drive it. Connecting takes 10 s at most; a stream
    /// may be silent for as long as nothing happens, logs may have any length, and other requests
    /// are for their callers to bound, as [`each`] does in time and [`bounded`](crate::bounded) in
    /// bytes.
    pub async fn connect(kubeconfig: Option<&Path>, user_agent: &str) -> Result<Self, HubClientError> {
        unbounded_client(kubeconfig, user_agent).await.map(Self::new)
    }

    /// A client of the hub itself.
    pub fn hub(&self) -> &Client {
        &self.hub
    }

    /// The clusters whose labels `selector` matches (the syntax of Kubernetes; empty: all), in the
    /// hub's order, which is by name. Those that a gateway cannot use are not among them.
    ///
    /// With the Go cluster-gateway, which does not select, a selector costs one more list and the
    /// verb `list` on `virtualclusters`.
    ///
    /// Fails within [`Fleet::listing_within`] a page, and beyond [`pages::MOST`] pages.
    pub async fn clusters(&self, selector: &str) -> Result<Vec<Cluster>, Failure> {
        pages::read(&self.hub, selector, self.page_within).await
    }

    /// A client for the cluster's API, through the gateway. Everything that kube's clients do
    /// works, watches, logs and upgrades too.
    ///
    /// It costs no connection, but a task and a queue of about 10 KiB, which kube makes for any
    /// client: make it when it is used, and keep names.
    pub fn client(&self, cluster: &ClusterName) -> Client {
        self.sender(cluster).client(self.hub.default_namespace()).with_valid_until(*self.hub.valid_until())
    }

    /// The same without kube's queue, for requests that are made by hand.
    pub fn sender(&self, cluster: &ClusterName) -> Sender {
        Sender::new(Through::new(self.hub.clone(), cluster))
    }

    /// `run` with a client for each of `clusters`: see [`each`].
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

    /// Repeats nothing by itself.
    fn try_from(mut config: Config) -> Result<Self, kube::Error> {
        config.default_retry = false;
        Client::try_from(config).map(Self::new)
    }
}

#[cfg(test)]
mod tests;
