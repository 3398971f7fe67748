//! What every request may need: immutable after start-up, shared by all cores.

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
    /// Before a name counts as unknown. Absent without a hub.
    pub second_look: Option<SecondLook>,
    /// Absent when there is none.
    pub hub: Option<Hub>,
    /// What Open Cluster Management knows of clusters. Absent without a hub.
    pub managed: Option<Arc<ManagedClusters>>,
    /// Karmada's aggregated API server. Absent unless the gateway stands beside a Karmada.
    pub karmada_upstream: Option<Arc<KarmadaUpstream>>,
    /// How clusters are shown to readers.
    pub view: View,
    pub exchange: Exchange,
    pub limits: Limits,
    /// Of bytes held for clients.
    pub budget: Budget,
    /// Absent if nothing is audited.
    pub audit: Option<audit::Sink>,
    /// Absent if nothing is traced.
    pub traces: Option<Traces>,
    pub readiness: Readiness,
    pub drain: Drain,
    pub metrics: Metrics,
    pub failure_log: FailureLog,
    /// Series of requests that concern no registered cluster.
    pub own_metrics: Arc<ClusterMetrics>,
    pub exposition: Exposition,
    /// Absent when other code of this process set up its logs.
    pub log_level: Option<LogLevel>,
    /// The runtime of everything that is not a request.
    pub control: Handle,
    pub settings: Settings,
}

/// Settings that requests look at.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What an upgrade by GET is reviewed as, but for watches of a collection: `create` unless an
    /// operator says otherwise, like the SPDY form of the same request, which is a POST
    /// (kube-apiserver 1.35 does the same for pods, KEP-4006). Other methods keep their own verb.
    pub upgrade_verb: Verb,
    /// Whether proxied requests are reviewed a second time, as what they are for the member.
    pub authorize_subpath: bool,
    /// What clusters that are registered here may be called.
    pub cluster_names: Template,
    /// Where they may be.
    pub endpoints: Endpoints,
    /// HTTP/2 streams per client connection.
    pub max_streams: u32,
}

// === impl RequestNeeds ===

impl RequestNeeds {
    /// The cluster that a permitted request is for.
    pub async fn cluster(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        match (self.clusters.get(name), &self.second_look) {
            // Boxed: rare, and not to be carried around by every request.
            (Err(LookupError::Absent), Some(look)) => Box::pin(look.cluster(name)).await,
            (found, _) => found,
        }
    }

    /// As whom `user` acts on `cluster` with a request for `route`; otherwise, what is wrong with
    /// the cluster's rules.
    pub async fn acting(
        &self,
        cluster: &Arc<Cluster>,
        user: &User,
        route: &ProxyRoute<'_>,
    ) -> Result<ActingAs, Arc<str>> {
        if route.dialect.acts_as_caller() {
            // Boxed, as all that few requests need.
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
