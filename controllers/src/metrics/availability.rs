//! Metrics of `availability`: the clusters that are judged by their members' answers.

use prometheus_client::registry::Registry;

use super::PREFIX;
use super::tally::{ObjectState, States};

/// Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Availability(States<Judged, String>);

/// The reported state of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    Available,
    NotReady,
    Unreachable,
    /// No state yet.
    Unknown,
    /// It is away, and so are most others: nothing is reported.
    Held,
}

// === impl Judged ===

impl ObjectState for Judged {
    fn as_str(self) -> &'static str {
        match self {
            Self::Available => "available",
            Self::NotReady => "not_ready",
            Self::Unreachable => "unreachable",
            Self::Unknown => "unknown",
            Self::Held => "held",
        }
    }
}

// === impl Availability ===

impl Availability {
    pub fn register(registry: &mut Registry) -> Self {
        let availability = Self::default();
        registry.register(
            format!("{PREFIX}_probed_clusters"),
            "ManagedClusters without an agent, by state; held: not reported as lost, because most do not answer",
            availability.0.family(),
        );
        availability
    }

    /// Returns true if the state changed.
    pub fn put(&self, cluster: &str, state: Judged) -> bool {
        self.0.settle(cluster.to_owned(), state)
    }

    pub fn forget(&self, cluster: &str) {
        self.0.forget(&cluster.to_owned());
    }

    /// Another replica judges, or none.
    pub fn clear(&self) {
        self.0.clear();
    }
}
