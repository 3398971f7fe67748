//! Metrics of `ClusterProfiles`, and of the probes behind them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use register::outcome::Outcome;

use super::tally::{ObjectState, States};
use super::{Operation, PREFIX};

/// Profiles by state, and counters. Clones share their values.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    states: States<ProfileState>,
    writes: Family<OfOperation, Counter>,
    probes: Family<OfOutcome, Counter>,
}

/// The state of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProfileState {
    Published,
    /// Another manager has the name.
    Taken,
    Failed,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfOperation {
    operation: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfOutcome {
    outcome: &'static str,
}

// === impl ProfileState ===

impl ObjectState for ProfileState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Taken => "taken",
            Self::Failed => "failed",
        }
    }
}

// === impl Profiles ===

impl Profiles {
    pub fn register(registry: &mut Registry) -> Self {
        let profiles = Self::default();
        let (count, writes, probes) = (profiles.states.family(), profiles.writes.clone(), profiles.probes.clone());
        registry.register(format!("{PREFIX}_cluster_profiles"), "ClusterProfiles of clusters, by outcome", count);
        registry.register(format!("{PREFIX}_cluster_profile_writes"), "Writes of ClusterProfiles", writes);
        registry.register(format!("{PREFIX}_cluster_probes"), "Probes of members through the gateway", probes);
        profiles
    }

    /// Sets the state of a profile. Returns true if it changed.
    pub fn settle(&self, namespace: &str, name: &str, state: ProfileState) -> bool {
        self.states.settle((namespace.to_owned(), name.to_owned()), state)
    }

    pub fn forget(&self, namespace: &str, name: &str) {
        self.states.forget(&(namespace.to_owned(), name.to_owned()));
    }

    /// Another replica publishes, or none.
    pub fn clear(&self) {
        self.states.clear();
    }

    pub fn wrote(&self, operation: Operation) {
        self.writes.get_or_create(&OfOperation { operation: operation.as_str() }).inc();
    }

    pub fn probed(&self, outcome: &Outcome) {
        let outcome = match outcome {
            Outcome::Healthy => "healthy",
            Outcome::NotReady => "not_ready",
            Outcome::Unreachable(_) => "unreachable",
            Outcome::NotProbed(_) => "not_probed",
        };
        self.probes.get_or_create(&OfOutcome { outcome }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_profile_counts_once_as_what_became_of_it() {
        let mut registry = Registry::default();
        let profiles = Profiles::register(&mut registry);
        let count = |state| profiles.states.count(state);
        assert!(profiles.settle("n", "a", ProfileState::Failed) && profiles.settle("n", "b", ProfileState::Taken));
        assert!(!profiles.settle("n", "b", ProfileState::Taken), "no news");
        assert!(profiles.settle("n", "a", ProfileState::Published));
        assert_eq!(
            (count(ProfileState::Published), count(ProfileState::Taken), count(ProfileState::Failed)),
            (1, 1, 0)
        );
        profiles.forget("n", "b");
        profiles.forget("n", "never seen");
        assert_eq!(count(ProfileState::Taken), 0);
        profiles.clear();
        profiles.settle("n", "a", ProfileState::Published);
        assert_eq!(count(ProfileState::Published), 1);
    }
}
