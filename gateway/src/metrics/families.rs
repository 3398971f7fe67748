//! The families of all clusters, their names and help, and the series that one cluster has in them.

use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

use super::life::Life;
use super::proxied::Proxied;
use super::recent::Recent;
use super::tunnel_open::LastTunnelOpen;
use super::{ClusterLabels, ClusterMetrics, DialErrorLabels, RequestLabels, SideLabels, StateLabels, credential};

#[derive(Clone)]
pub(super) struct Families {
    pub(super) requests: Family<RequestLabels, Counter>,
    pub(super) duration: Family<ClusterLabels, Histogram, fn() -> Histogram>,
    pub(super) in_flight: Family<ClusterLabels, Gauge>,
    pub(super) upgrades: Family<ClusterLabels, Gauge>,
    pub(super) upgrade_bytes: Family<ClusterLabels, Counter>,
    pub(super) connections: Family<ClusterLabels, Gauge>,
    pub(super) dial_errors: Family<DialErrorLabels, Counter>,
    pub(super) circuits: Family<ClusterLabels, Gauge>,
    pub(super) tunnelled: Family<ClusterLabels, Gauge>,
    pub(super) credential: credential::Families,
    pub(super) clusters: Family<StateLabels, Gauge>,
    pub(super) client_connections: Gauge,
    pub(super) tls_failures: Counter,
    pub(super) failures: Family<SideLabels, Counter>,
    pub(super) cut_responses: Family<SideLabels, Counter>,
    /// None if they are turned off.
    pub(super) proxied: Option<Proxied>,
}

// === impl Families ===

impl Families {
    pub(super) fn announce(&self, registry: &mut Registry) {
        self.announce_requests(registry);
        self.announce_connections(registry);
        registry.register(
            "cluster_gateway_clusters",
            "Registered clusters by state (ready, invalid)",
            self.clusters.clone(),
        );
    }

    fn announce_requests(&self, registry: &mut Registry) {
        registry.register(
            "cluster_gateway_requests",
            "Requests by cluster (empty: answered by the gateway itself), verb, HTTP status code and dialect (absent: native)",
            self.requests.clone(),
        );
        registry.register(
            "cluster_gateway_request_duration_seconds",
            "Time from request head to end of response, streams and upgrades excluded",
            self.duration.clone(),
        );
        registry.register(
            "cluster_gateway_requests_in_flight",
            "Requests being served, streams included, upgrades excluded",
            self.in_flight.clone(),
        );
        registry.register(
            "cluster_gateway_upgrades_in_flight",
            "Open upgraded connections (exec, attach, port-forward)",
            self.upgrades.clone(),
        );
        registry.register(
            "cluster_gateway_upgrade_bytes",
            "Bytes moved over upgraded connections, in both directions",
            self.upgrade_bytes.clone(),
        );
        registry.register(
            "cluster_gateway_failures",
            "Requests that the gateway answered with its own error, by the side that failed",
            self.failures.clone(),
        );
        registry.register(
            "cluster_gateway_cut_responses",
            "Responses that were cut off after their head, by the side that ended them",
            self.cut_responses.clone(),
        );
    }

    fn announce_connections(&self, registry: &mut Registry) {
        registry.register(
            "cluster_gateway_upstream_connections",
            "Open pooled connections to the member",
            self.connections.clone(),
        );
        registry.register(
            "cluster_gateway_upstream_dial_errors",
            "Connections to the member that could not be opened, by kind",
            self.dial_errors.clone(),
        );
        registry.register(
            "cluster_gateway_upstream_circuit_open",
            "1 while dials to the member are paused because the last ones failed",
            self.circuits.clone(),
        );
        registry.register(
            "cluster_gateway_tunnelled",
            "1 for each cluster that is registered to be reached through the tunnel",
            self.tunnelled.clone(),
        );
        registry.register(
            "cluster_gateway_client_connections",
            "Open client connections",
            self.client_connections.clone(),
        );
        registry.register(
            "cluster_gateway_tls_handshake_failures",
            "Client connections that failed during the TLS handshake",
            self.tls_failures.clone(),
        );
    }

    pub(super) fn series(&self, labels: ClusterLabels) -> Arc<ClusterMetrics> {
        let life = Arc::<Life>::default();
        Arc::new(ClusterMetrics {
            duration: self.duration.get_or_create_owned(&labels),
            in_flight: self.in_flight.get_or_create_owned(&labels),
            upgrades: self.upgrades.get_or_create_owned(&labels),
            upgrade_bytes: self.upgrade_bytes.get_or_create_owned(&labels),
            connections: self.connections.get_or_create_owned(&labels),
            circuit: self.circuits.get_or_create_owned(&labels),
            newest_circuit: Arc::default(),
            proxied: self
                .proxied
                .as_ref()
                .filter(|_| !labels.cluster.is_empty())
                .map(|all| all.of_cluster(&labels.cluster, &life)),
            labels,
            families: self.clone(),
            life,
            by_outcome: Default::default(),
            by_dial_error: Mutex::default(),
            since: SystemTime::now(),
            streams: Gauge::default(),
            by_side: Default::default(),
            recent: Recent::default(),
            tunnel_open: LastTunnelOpen::default(),
        })
    }
}
