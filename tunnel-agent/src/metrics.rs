//! `tunnel_agent_*`: events are counted where they happen; links and bytes are read at each scrape.

mod live;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use telemetry::histogram::Histogram;

pub use self::live::Live;

/// In seconds; the last bounds are for slow and for silent destinations.
const DIAL_BOUNDS: &[f64] = &[0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// All counters. Clones share their values.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Links established.
    pub registrations: Counter,
    registration_failures: Family<Reason, Counter>,
    /// Links that ended unexpectedly.
    pub links_lost: Counter,
    /// Links that were replaced, because a server asked for it or the credential changed.
    pub links_replaced: Counter,
    dials: Family<Outcome, Counter>,
    /// The usual outcomes of `dials`: present from the start, and incremented without a look-up.
    pub connected: Counter,
    pub cancelled: Counter,
    pub dial_seconds: Histogram,
    /// Destinations refused by the allow-list.
    pub refused_destinations: Counter,
    /// Streams that ended with a reset instead of a clean end in both directions.
    pub streams_broken: Counter,
    pub streams: Gauge,
    /// Failures to re-read files.
    pub reload_failures: Counter,
    /// 1 while the API server answers.
    pub api_server_up: Gauge,
    /// 1 while the hub accepts the cluster that joined it.
    pub accepted: Gauge,
    joins_again: Family<Reason, Counter>,
    /// 1 while the hub refuses to renew the certificate.
    pub renewal_refused: Gauge,
    /// 1 while the hub has a good token of the member's account.
    pub credential_filled: Gauge,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

// === impl Metrics ===

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let dials = Family::<Outcome, Counter>::default();
        let [connected, cancelled] =
            ["connected", "cancelled"].map(|outcome| dials.get_or_create_owned(&Outcome { outcome }));
        let metrics = Self {
            registrations: Counter::default(),
            registration_failures: Family::default(),
            links_lost: Counter::default(),
            links_replaced: Counter::default(),
            dials,
            connected,
            cancelled,
            dial_seconds: Histogram::new(DIAL_BOUNDS),
            refused_destinations: Counter::default(),
            streams_broken: Counter::default(),
            streams: Gauge::default(),
            reload_failures: Counter::default(),
            api_server_up: Gauge::default(),
            accepted: Gauge::default(),
            joins_again: Family::default(),
            renewal_refused: Gauge::default(),
            credential_filled: Gauge::default(),
        };
        for reason in ["expired", "other_hub", "unauthorized"] {
            drop(metrics.joins_again.get_or_create(&Reason { reason }));
        }
        metrics.register_links(registry);
        metrics.register_streams(registry);
        metrics.register_joining(registry);
        metrics
    }

    fn register_joining(&self, registry: &mut Registry) {
        registry.register(
            "tunnel_agent_joins_again",
            "Certificates of the hub (--register) that became unusable, by reason",
            self.joins_again.clone(),
        );
        registry.register(
            "tunnel_agent_renewal_refused",
            "1 while the hub refuses to renew the certificate of an agent that joined it (--register)",
            self.renewal_refused.clone(),
        );
        registry.register(
            "tunnel_agent_credential_filled",
            "1 while the hub has a valid token for the cluster (--credential-service-account)",
            self.credential_filled.clone(),
        );
    }

    fn register_links(&self, registry: &mut Registry) {
        let mut add = |name: &str, help: &str, counter: &Counter| {
            registry.register(format!("tunnel_agent_{name}"), help, counter.clone());
        };
        add("registrations", "Links established", &self.registrations);
        add("links_lost", "Links lost", &self.links_lost);
        add("links_replaced", "Links replaced for a leaving server or a changed credential", &self.links_replaced);
        add("reload_failures", "Failed reloads of certificates or tokens", &self.reload_failures);
        registry.register(
            "tunnel_agent_registration_failures",
            "Failed attempts to link, by reason",
            self.registration_failures.clone(),
        );
        registry.register(
            "tunnel_agent_api_server_up",
            "1 while the cluster's API server answers",
            self.api_server_up.clone(),
        );
        registry.register(
            "tunnel_agent_accepted",
            "1 while the hub that the cluster joined (--register) accepts it",
            self.accepted.clone(),
        );
    }

    fn register_streams(&self, registry: &mut Registry) {
        registry.register("tunnel_agent_dials", "Requested destinations, by outcome", self.dials.clone());
        registry.register("tunnel_agent_dial_seconds", "Time to connect to a destination", self.dial_seconds.clone());
        registry.register(
            "tunnel_agent_refused_destinations",
            "Destinations refused by the allow-list",
            self.refused_destinations.clone(),
        );
        registry.register("tunnel_agent_streams", "Streams open now", self.streams.clone());
        registry.register(
            "tunnel_agent_streams_broken",
            "Streams that ended with a reset",
            self.streams_broken.clone(),
        );
    }

    /// Counts a failed dial.
    pub fn failed(&self, outcome: &'static str) {
        self.dials.get_or_create(&Outcome { outcome }).inc();
    }

    /// Counts a cluster that must join its hub again.
    pub fn joins_again(&self, reason: &'static str) {
        self.joins_again.get_or_create(&Reason { reason }).inc();
    }

    pub fn not_registered(&self, reason: &'static str) {
        self.registration_failures.get_or_create(&Reason { reason }).inc();
    }
}
