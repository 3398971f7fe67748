//! What requests need: immutable after start-up, shared by all cores.

use std::sync::Arc;

use api::access::Verb;
use api::cluster_name::ClusterName;
use api::route::ProxyRoute;
use auth::{Authenticator, Authorizer, User};
use net::drain::Drain;
use register::endpoints::Endpoints;
use register::naming::Template;
use telemetry::logs::LogLevel;
use telemetry::metrics::Metrics as Exposition;
use telemetry::readiness::Readiness;
use tokio::runtime::Handle;
use traces::Traces;

use crate::clusters::managed::ManagedClusters;
use crate::clusters::{Cluster, Clusters, KarmadaUpstream, LookupError, SecondLook, View};
use crate::clusters::{rights, rules_review};
use crate::exchange::{ActingAs, Exchange};
use crate::failures::FailureLog;
use crate::holding::Budget;
use crate::hub::Hub;
use crate::limits::Limits;
use crate::metrics::{ClusterMetrics, Metrics};

pub struct RequestNeeds {
    pub authenticator: Arc<Authenticator>,
    pub authorizer: Arc<Authorizer>,
    pub clusters: Arc<Clusters>,
    /// Asked before a name counts as unregistered. None without a hub.
    pub second_look: Option<SecondLook>,
    /// None without a hub.
    pub hub: Option<Hub>,
    /// The `ManagedCluster`s of Open Cluster Management. None without a hub.
    pub managed: Option<Arc<ManagedClusters>>,
    /// The Karmada upstream. None unless the gateway stands beside a Karmada.
    pub karmada_upstream: Option<Arc<KarmadaUpstream>>,
    /// The settings for readers of clusters.
    pub view: View,
    pub exchange: Exchange,
    pub limits: Limits,
    /// The budget of bytes held for clients.
    pub budget: Budget,
    /// None if there is no audit log.
    pub audit: Option<audit::Sink>,
    /// None if tracing is off.
    pub traces: Option<Traces>,
    pub readiness: Readiness,
    pub drain: Drain,
    pub metrics: Metrics,
    pub failure_log: FailureLog,
    /// Series of requests without a registered cluster.
    pub own_metrics: Arc<ClusterMetrics>,
    pub exposition: Exposition,
    /// None if other code of this process has set up its logs.
    pub log_level: Option<LogLevel>,
    /// The runtime of all tasks except requests.
    pub control: Handle,
    pub settings: Settings,
}

/// Settings for requests.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The verb under which upgrades by GET are reviewed, except watches of a collection: `create`
    /// by default, like the SPDY form of the same request, which is a POST (kube-apiserver 1.35
    /// does the same for pods, KEP-4006). Other methods keep their own verb.
    pub upgrade_verb: Verb,
    /// Whether proxied requests get a second review, for what they do on the member.
    pub authorize_subpath: bool,
    /// The names that clusters registered here may have.
    pub cluster_names: Template,
    /// Where they may be.
    pub endpoints: Endpoints,
    /// HTTP/2 streams per client connection.
    pub max_streams: u32,
}

// === impl RequestNeeds ===

impl RequestNeeds {
    /// The cluster of a permitted request.
    pub async fn cluster(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        match (self.clusters.get(name), &self.second_look) {
            // Boxed: rare, and too large for every request's future.
            (Err(LookupError::Absent), Some(look)) => Box::pin(look.cluster(name)).await,
            (found, _) => found,
        }
    }

    /// The identity with which `user` acts on `cluster` in a request for `route`. Fails with what
    /// is wrong in the cluster's rules.
    pub async fn acting(
        &self,
        cluster: &Arc<Cluster>,
        user: &User,
        route: &ProxyRoute<'_>,
    ) -> Result<ActingAs, Arc<str>> {
        if route.dialect.acts_as_caller() {
            // Boxed, because few requests need it.
            return Ok(Box::pin(self.as_caller(cluster)).await);
        }
        self.exchange.acting(cluster.name().as_str(), cluster.identity_rules(), user, route.asks.impersonates())
    }

    async fn as_caller(&self, cluster: &Arc<Cluster>) -> ActingAs {
        let asks = self.exchange.asks_members();
        self.exchange.as_caller(if asks {
            rules_review::impersonable(cluster, &self.control).await
        } else {
            rights::everything()
        })
    }
}
