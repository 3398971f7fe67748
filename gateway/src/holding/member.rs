//! Counts what members make the gateway hold without a request: incomplete heads.

use api::cluster_name::ClusterName;
use net::budget::{Counters, Owner};

use super::{Account, Budget, Holding, Kind};

/// Makes accounts for the connections to one member. All count for its cluster.
pub struct MemberAccounts {
    budget: Budget,
    cluster: ClusterName,
}

pub(super) struct Member {
    counters: Counters,
    cluster: ClusterName,
}

// === impl MemberAccounts ===

impl MemberAccounts {
    pub fn new(budget: Budget, cluster: ClusterName) -> Self {
        Self { budget, cluster }
    }

    /// An account for one connection on `core`.
    pub fn open(&self, core: usize) -> Account {
        let member = Member { counters: Counters::default(), cluster: self.cluster.clone() };
        self.budget.open(core, Holding(Kind::Member(member)))
    }
}

// === impl Member ===

impl Member {
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn owner(&self) -> Owner {
        Owner::Server(self.cluster.to_string())
    }
}
