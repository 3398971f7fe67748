//! Counts what members make the gateway hold without a request: incomplete heads, and what HTTP/2
//! keeps.

use api::cluster_name::ClusterName;
use net::budget::{Counters, Owner};

use super::queue::Slots;
use super::{Account, Budget, Holding, Kind};

/// Makes accounts for the connections to one member. All count for its cluster.
pub struct MemberAccounts {
    budget: Budget,
    cluster: ClusterName,
}

pub(super) struct Member {
    counters: Counters,
    cluster: ClusterName,
    /// Where pieces of uploads wait.
    slots: Slots,
}

// === impl MemberAccounts ===

impl MemberAccounts {
    pub fn new(budget: Budget, cluster: ClusterName) -> Self {
        Self { budget, cluster }
    }

    /// An account for one connection on `core`.
    pub fn open(&self, core: usize) -> Account {
        let (counters, slots) = (Counters::default(), Slots::default());
        let member = Member { counters, cluster: self.cluster.clone(), slots };
        self.budget.open(core, Holding(Kind::Member(member)))
    }
}

// === impl Member ===

impl Member {
    pub(super) fn counters(&self) -> &Counters {
        &self.counters
    }

    pub(super) fn slots(&self) -> &Slots {
        &self.slots
    }

    pub(super) fn owner(&self) -> Owner {
        Owner::Server(self.cluster.to_string())
    }
}
