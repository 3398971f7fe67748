//! The hub's `ManagedServiceAccounts` as last seen, the queue of those to check, and the limit of
//! concurrent work for one cluster.

use std::time::Duration;

use api::cluster_name::ClusterName;
use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store};
use net::shares::{Share, Shares};
use register::managed_service_account::{GROUP, KIND, PLURAL, VERSIONS};

use crate::parts::hub_calls;
use crate::wakes::Wakes;

/// A quarter of all slots.
const PER_CLUSTER: usize = super::AT_ONCE as usize / 4;
/// Wait of an account that got no permit.
pub const NO_PERMIT: Duration = Duration::from_secs(1);

/// Cheap to clone.
#[derive(Clone)]
pub struct Accounts {
    pub store: Store<DynamicObject>,
    pub wakes: Wakes,
    pub resource: ApiResource,
}

/// Permits to work on accounts, by cluster, so that a slow member does not delay other clusters.
#[derive(Default)]
pub struct Permits(Shares<ClusterName>);

/// The only version that this program understands.
pub fn resource() -> ApiResource {
    hub_calls::resource(GROUP, VERSIONS[0], KIND, PLURAL)
}

// === impl Accounts ===

impl Accounts {
    pub fn reference(&self, namespace: &str, name: &str) -> ObjectRef<DynamicObject> {
        ObjectRef::new_with(name, self.resource.clone()).within(namespace)
    }

    pub fn has(&self, namespace: &str, name: &str) -> bool {
        self.store.get(&self.reference(namespace, name)).is_some()
    }

    /// Wakes an account, if it exists.
    pub fn wake(&self, namespace: &str, name: &str) {
        if self.has(namespace, name) {
            self.wakes.push(namespace, name);
        }
    }

    /// Wakes the accounts of one cluster.
    pub fn wake_in(&self, namespace: &str) {
        for account in self.store.state().iter().filter(|account| account.namespace().as_deref() == Some(namespace)) {
            self.wakes.push(namespace, &account.name_any());
        }
    }

    pub fn wake_all(&self) {
        for account in self.store.state() {
            self.wakes.push(&account.namespace().unwrap_or_default(), &account.name_any());
        }
    }

    /// Whether a cluster has accounts.
    pub fn are_in(&self, namespace: &str) -> bool {
        self.store.state().iter().any(|account| account.namespace().as_deref() == Some(namespace))
    }
}

// === impl Permits ===

impl Permits {
    /// A permit of the cluster, if one is free.
    pub fn of(&self, cluster: &ClusterName) -> Option<Share<ClusterName>> {
        self.0.enter(cluster.clone(), PER_CLUSTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_takes_no_permit_of_another() {
        let permits = Permits::default();
        let [slow, other] = ["slow", "other"].map(|name| ClusterName::parse(name).unwrap());
        let mut taken: Vec<_> = (0..PER_CLUSTER).map(|_| permits.of(&slow).unwrap()).collect();
        assert!(permits.of(&slow).is_none());
        assert!(permits.of(&other).is_some());
        taken.pop();
        assert!(permits.of(&slow).is_some(), "given back");
        taken.clear();
        drop(permits.of(&other));
        assert_eq!(permits.0.keys(), 0, "those that are done are forgotten");
    }
}
