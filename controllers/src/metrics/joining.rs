//! Metrics of `ocm-registration`: requests, clusters, and what prevents its work.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::PREFIX;
use super::tally::Tally;

/// The empty labels of metrics that exist only while the part runs.
type NoLabels = [(&'static str, &'static str); 0];

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Joining {
    csr: Family<OfDecision, Counter>,
    clusters: Tally<String, OfClusters>,
    stands_in: Family<NoLabels, Gauge>,
    admission: Family<OfPolicy, Gauge>,
}

/// The decision on a certificate request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Renewed,
    Joined,
    Person,
    Unrecognized,
    Paced,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfDecision {
    decision: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfClusters {
    accepted: &'static str,
    available: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfPolicy {
    policy: &'static str,
}

// === impl Decision ===

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Renewed => "renewed",
            Self::Joined => "joined",
            Self::Person => "person",
            Self::Unrecognized => "unrecognized",
            Self::Paced => "paced",
        }
    }
}

// === impl Joining ===

impl Joining {
    pub fn register(registry: &mut Registry) -> Self {
        let joining = Self::default();
        registry.register(format!("{PREFIX}_csr"), "Certificate requests of agents, by decision", joining.csr.clone());
        registry.register(
            format!("{PREFIX}_managed_clusters"),
            "ManagedClusters, by acceptance and availability",
            joining.clusters.family(),
        );
        registry.register(
            format!("{PREFIX}_ocm_stands_in"),
            "1 while ocm-registration works, 0 while Open Cluster Management's own controllers run",
            joining.stands_in.clone(),
        );
        registry.register(
            format!("{PREFIX}_ocm_admission"),
            "1 while this admission policy is in force; while it is 0, no cluster is accepted",
            joining.admission.clone(),
        );
        joining
    }

    pub fn judged(&self, decision: Decision) {
        self.csr.get_or_create(&OfDecision { decision: decision.as_str() }).inc();
    }

    /// Sets the known state of a cluster. `available` is the status of that condition.
    pub fn count(&self, cluster: &str, is_accepted: bool, available: Option<&str>) {
        let accepted = if is_accepted { "true" } else { "false" };
        let available = match available {
            Some("True") => "true",
            Some("False") => "false",
            _ => "unknown",
        };
        self.clusters.put(cluster.to_owned(), &OfClusters { accepted, available });
    }

    pub fn forget(&self, cluster: &str) {
        self.clusters.forget(&cluster.to_owned());
    }

    pub fn admission(&self, policy: &'static str, is_in_force: bool) {
        self.admission.get_or_create(&OfPolicy { policy }).set(is_in_force.into());
    }

    pub fn begin(&self) {
        self.stands_in.get_or_create(&[]).set(1);
    }

    /// The part stands by: what it saw is no longer true.
    pub fn keep_out(&self) {
        self.clear();
        self.stands_in.get_or_create(&[]).set(0);
    }

    /// Another replica writes now.
    pub fn clear(&self) {
        self.clusters.clear();
        self.admission.clear();
        self.stands_in.clear();
    }
}
