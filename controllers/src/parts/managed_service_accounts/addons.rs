//! Tracks where upstream's add-on is installed, because its agent fills the
//! `ManagedServiceAccounts` there.

use std::collections::HashSet;
use std::time::Duration;

use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::timeout;

use super::accounts::Accounts;
use crate::calls::paged;
use crate::feed::crd::{self, Presence};
use crate::feed::follow::{self, Change};
use crate::raw::Meta;
use crate::sources::Kind;

/// The add-on's name in each cluster's namespace.
const ADDON: &str = "managed-serviceaccount";
/// Only the metadata of an add-on is read. A version that is not in this list does not mean that
/// the kind is absent: the part then waits.
const KIND: Kind = Kind {
    group: "addon.open-cluster-management.io",
    name: "ManagedClusterAddOn",
    plural: "managedclusteraddons",
    versions: &["v1beta1", "v1alpha1"],
    is_custom: true,
};
/// Wait for the first list of definitions.
const PATIENCE: Duration = Duration::from_secs(2);

pub struct Addons {
    namespaces: Mutex<HashSet<String>>,
    is_known: watch::Sender<bool>,
}

// === impl Addons ===

impl Addons {
    pub fn new() -> Self {
        Self { namespaces: Mutex::default(), is_known: watch::Sender::new(false) }
    }

    /// Completes when the add-ons are known. Nothing is written before that.
    pub async fn known(&self) {
        // The sender lives as long as this receiver.
        let _ = self.is_known.subscribe().wait_for(|is_known| *is_known).await;
    }

    /// Whether the add-on is in a namespace, once that is known.
    pub fn is_in(&self, namespace: &str) -> bool {
        self.namespaces.lock().contains(namespace)
    }

    /// Follows the add-ons, and wakes the accounts of a namespace when that changes. Never ends.
    pub async fn follow(&self, hub: &Client, accounts: &Accounts) {
        let mut presence = crd::follow(&KIND, hub.clone());
        // The sender lives as long as this receiver. Without the right to read definitions it sends
        // nothing.
        let _ = timeout(PATIENCE, presence.wait_for(|presence| *presence != Presence::Unknown)).await;
        loop {
            let now = *presence.borrow_and_update();
            tokio::select! {
                () = self.follow_while(now, hub, accounts) => {}
                changed = presence.changed() => if changed.is_err() {
                    std::future::pending::<()>().await;
                },
            }
        }
    }

    async fn follow_while(&self, presence: Presence, hub: &Client, accounts: &Accounts) {
        if presence == Presence::Leaving {
            self.set(HashSet::new(), accounts);
            std::future::pending::<()>().await;
        }
        let resource = crd::served(&KIND, hub).await;
        self.watch(&resource, hub, accounts).await;
    }

    async fn watch(&self, resource: &ApiResource, hub: &Client, accounts: &Accounts) {
        let api: Api<Meta<DynamicObject>> = Api::all_with(hub.clone(), resource);
        let only = paged().fields(&format!("metadata.name={ADDON}"));
        let namespace = |addon: &Meta<DynamicObject>| addon.namespace().unwrap_or_default();
        let apply = |change: Change<Meta<DynamicObject>>| match change {
            Change::Listed(addons) => self.set(addons.iter().map(namespace).collect(), accounts),
            Change::Applied(addon) => self.change(&namespace(&addon), true, accounts),
            Change::Deleted(addon) => self.change(&namespace(&addon), false, accounts),
        };
        // While the watch fails, the last known state counts.
        follow::each(watcher(api, only), "ManagedClusterAddOns", follow::whole(apply)).await;
    }

    fn set(&self, namespaces: HashSet<String>, accounts: &Accounts) {
        let mut known = self.namespaces.lock();
        let changed: Vec<String> = known.symmetric_difference(&namespaces).cloned().collect();
        *known = namespaces;
        drop(known);
        for namespace in changed {
            accounts.wake_in(&namespace);
        }
        self.is_known.send_replace(true);
    }

    fn change(&self, namespace: &str, is_there: bool, accounts: &Accounts) {
        let mut namespaces = self.namespaces.lock();
        let is_news = if is_there { namespaces.insert(namespace.to_owned()) } else { namespaces.remove(namespace) };
        drop(namespaces);
        if is_news {
            accounts.wake_in(namespace);
        }
    }
}
