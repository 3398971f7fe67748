//! Metrics of links and registrations.
//!
//! Only authorized agents make their cluster a label, and at most [`MOST_CLUSTERS`] clusters have
//! one at a time. The last link removes its cluster's series.

mod outcome;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;
use tunnel::ClusterName;

pub use self::outcome::{Ended, Outcome};

/// Most clusters with series of their own; the links of all others count in one, `other`.
const MOST_CLUSTERS: usize = 1_000;
const OTHER: &str = "other";
/// Seconds, from the same rack to the other side of the earth by satellite.
const RTT_BUCKETS: [f64; 10] = [0.0005, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// Metric handles. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    links: Family<ClusterLabels, Gauge>,
    registrations: Family<OutcomeLabels, Counter>,
    ended: Family<ReasonLabels, Counter>,
    rtt: Histogram,
    reload_failures: Counter,
    follows_roles: Gauge,
    rechecks: Family<CauseLabels, Counter>,
    labels: Arc<Mutex<HashSet<ClusterName>>>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CauseLabels {
    cause: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

// === impl Metrics ===

impl Metrics {
    /// Registers `tunnel_server_links{cluster}`, `tunnel_server_registrations_total{outcome}`,
    /// `tunnel_server_links_ended_total{reason}`, `tunnel_server_link_rtt_seconds`,
    /// `tunnel_server_agent_certificate_reload_failures_total`, `tunnel_server_follows_roles` and
    /// `tunnel_server_rechecks_total{cause}`.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        metrics.announce_links(registry);
        metrics.announce_credentials(registry);
        for outcome in Outcome::ALL {
            let _ = metrics.registrations.get_or_create_owned(&OutcomeLabels { outcome: outcome.as_str() });
        }
        for reason in Ended::ALL {
            let _ = metrics.ended.get_or_create_owned(&ReasonLabels { reason: reason.as_str() });
        }
        metrics
    }

    fn announce_links(&self, registry: &mut Registry) {
        registry.register("tunnel_server_links", "Links of tunnel-agents, by cluster", self.links.clone());
        registry.register(
            "tunnel_server_registrations",
            "Connections to the agents' listener, by outcome",
            self.registrations.clone(),
        );
        registry.register(
            "tunnel_server_links_ended",
            "Links that ended, by reason: the agent left in order, the link was lost, the agent sent too many \
             SETTINGS or GOAWAY frames, its credential or permission was revoked, it could not be reviewed for too \
             long, or this server shut down",
            self.ended.clone(),
        );
        registry.register(
            "tunnel_server_link_rtt_seconds",
            "Round trips to tunnel-agents, one sample per link and recheck interval",
            self.rtt.clone(),
        );
    }

    fn announce_credentials(&self, registry: &mut Registry) {
        registry.register(
            "tunnel_server_agent_certificate_reload_failures",
            "Changes of the serving certificate for agents that could not be used; the last good one stays in use",
            self.reload_failures.clone(),
        );
        registry.register(
            "tunnel_server_follows_roles",
            "Whether the hub's roles and bindings are followed, so that a withdrawn right ends links at once (1) or \
             only with the next recheck (0)",
            self.follows_roles.clone(),
        );
        registry.register(
            "tunnel_server_rechecks",
            "Linked credentials that were judged again, by cause: their time had come (interval), or the roles or \
             bindings of their cluster changed (change)",
            self.rechecks.clone(),
        );
    }

    pub fn registered(&self, outcome: Outcome) {
        self.registrations.get_or_create(&OutcomeLabels { outcome: outcome.as_str() }).inc();
    }

    pub fn ended(&self, reason: Ended) {
        self.ended.get_or_create(&ReasonLabels { reason: reason.as_str() }).inc();
    }

    pub fn reload_failed(&self) {
        self.reload_failures.inc();
    }

    pub(crate) fn follows_roles(&self, follows: bool) {
        self.follows_roles.set(follows.into());
    }

    /// Counts a recheck of a link's credential, because of a change or because the interval passed.
    pub(crate) fn rechecked(&self, changed: bool) {
        self.rechecks.get_or_create(&CauseLabels { cause: if changed { "change" } else { "interval" } }).inc();
    }

    pub fn rtt(&self, rtt: Duration) {
        self.rtt.observe(rtt);
    }

    /// Counts one more link of `cluster`.
    pub(super) fn link_added(&self, cluster: &ClusterName) {
        let mut labels = self.labels.lock();
        let own = labels.contains(cluster) || labels.len() < MOST_CLUSTERS && labels.insert(cluster.clone());
        self.links.get_or_create(&ClusterLabels::of(cluster, own)).inc();
    }

    /// Counts one link of `cluster` less; `last` if it has no other.
    pub(super) fn link_removed(&self, cluster: &ClusterName, last: bool) {
        let mut labels = self.labels.lock();
        let own = labels.contains(cluster);
        let series = ClusterLabels::of(cluster, own);
        if own && last {
            labels.remove(cluster);
            self.links.remove(&series);
        } else {
            self.links.get_or_create(&series).dec();
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            links: Family::default(),
            registrations: Family::default(),
            ended: Family::default(),
            rtt: Histogram::new(&RTT_BUCKETS),
            reload_failures: Counter::default(),
            follows_roles: Gauge::default(),
            rechecks: Family::default(),
            labels: Arc::default(),
        }
    }
}

// === impl ClusterLabels ===

impl ClusterLabels {
    fn of(cluster: &ClusterName, own: bool) -> Self {
        Self { cluster: if own { cluster.to_string() } else { OTHER.to_owned() } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, registry).expect("into a String");
        text
    }

    #[test]
    fn a_clusters_series_goes_with_its_last_link_and_room_is_for_others_again() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let name = |number: usize| ClusterName::parse(&format!("c{number}")).unwrap();
        (0..=MOST_CLUSTERS).for_each(|number| metrics.link_added(&name(number)));
        metrics.link_added(&name(0));
        let told = text(&registry);
        assert!(told.contains("tunnel_server_links{cluster=\"c0\"} 2"), "{told}");
        assert!(told.contains("tunnel_server_links{cluster=\"other\"} 1"), "{told}");
        assert!(!told.contains(&format!("c{MOST_CLUSTERS}")), "{told}");
        metrics.link_removed(&name(0), false);
        metrics.link_removed(&name(0), true);
        metrics.link_removed(&name(MOST_CLUSTERS), true);
        metrics.link_added(&name(MOST_CLUSTERS));
        let told = text(&registry);
        assert!(!told.contains("cluster=\"c0\""), "{told}");
        assert!(told.contains("tunnel_server_links{cluster=\"other\"} 0"), "{told}");
        assert!(told.contains(&format!("cluster=\"c{MOST_CLUSTERS}\"}} 1")), "{told}");
    }

    #[test]
    fn every_outcome_is_there_from_the_start() {
        let mut registry = Registry::default();
        Metrics::register(&mut registry).registered(Outcome::Forbidden);
        let told = text(&registry);
        assert!(told.contains("tunnel_server_registrations_total{outcome=\"forbidden\"} 1"), "{told}");
        assert!(told.contains("tunnel_server_links_ended_total{reason=\"revoked\"} 0"), "{told}");
    }
}
