//! The `ManagedServiceAccounts` of the hub, as they were seen last, and the queue of those that are
//! to be looked at.

use kube::ResourceExt as _;
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::reflector::{ObjectRef, Store};
use register::managed_service_account::{GROUP, KIND, PLURAL, VERSIONS};

use crate::parts::hub;
use crate::wakes::Wakes;

/// Cheap to clone.
#[derive(Clone)]
pub struct Accounts {
    pub store: Store<DynamicObject>,
    pub wakes: Wakes,
    pub resource: ApiResource,
}

/// The one version that is understood.
pub fn resource() -> ApiResource {
    hub::resource(GROUP, VERSIONS[0], KIND, PLURAL)
}

// === impl Accounts ===

impl Accounts {
    pub fn reference(&self, namespace: &str, name: &str) -> ObjectRef<DynamicObject> {
        ObjectRef::new_with(name, self.resource.clone()).within(namespace)
    }

    pub fn has(&self, namespace: &str, name: &str) -> bool {
        self.store.get(&self.reference(namespace, name)).is_some()
    }

    /// Has one looked at, if there is one of that name.
    pub fn wake(&self, namespace: &str, name: &str) {
        if self.has(namespace, name) {
            self.wakes.push(namespace, name);
        }
    }

    /// Those of one cluster.
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

    /// Whether a cluster has any.
    pub fn are_in(&self, namespace: &str) -> bool {
        self.store.state().iter().any(|account| account.namespace().as_deref() == Some(namespace))
    }
}
