//! Watches that wake a `ManagedServiceAccount`: itself, its Secret, its cluster's registration, and
//! its ServiceAccount on the member.
//!
//! The watch of a member begins when it first answers for an account. So a deleted ServiceAccount
//! is restored at once, as upstream's agent on the member does by its own watch.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::CREDENTIAL_TYPE_LABEL;
use fleet::{Change, Sender, Sight};
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt as _};
use net::backoff::Backoff;
use parking_lot::Mutex;
use register::managed_service_account::{GROUP, KIND, LABEL, MEMBER_NAMESPACE, PLURAL, VERSIONS};
use serde_json::Value;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

use super::Part;
use super::accounts::Accounts;
use crate::calls::{paged, watcher};
use crate::feed::{crd, follow};
use crate::parts::hub_calls;
use crate::raw::{self, RawObject};
use crate::secrets::{Meta, Secrets};
use crate::sources;

const ACCOUNT: sources::Kind =
    sources::Kind { group: GROUP, name: KIND, plural: PLURAL, versions: VERSIONS, is_custom: true };
/// Most bytes kept of an object's fields, as JSON.
const LARGEST: usize = 64 << 10;
/// Most bytes of one list or watch of a member, which are held whole. A larger one fails and begins
/// again.
const MOST_WATCHED: usize = 2 << 20;
/// Time between the lists, pages and watches of one member.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(1);
/// A watch that has lasted this long counts as working.
const LIVES: Duration = Duration::from_mins(1);
/// Time between two checks that a member's changes cause.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
/// Most members that are watched. Accounts of others are checked at intervals.
const MOST_MEMBERS: usize = 4096;

/// The watches of members. They end when this is dropped.
#[derive(Default)]
pub struct Members(Mutex<HashMap<ClusterName, AbortOnDropHandle<()>>>);

/// Follows the `ManagedServiceAccounts`. Never ends.
pub async fn objects(part: &Part, mut writer: Writer<DynamicObject>) {
    let accounts = &part.accounts;
    let resource = crd::served(&ACCOUNT, &part.client).await;
    let api: Api<RawObject> = Api::all_with(part.client.clone(), &resource);
    let config = paged();
    let mut listed = HashSet::new();
    let apply = |event: Event<DynamicObject>| {
        let event = event.modify(prune);
        let is_news = is_news(accounts, &event);
        writer.apply_watcher_event(&event);
        match &event {
            Event::Init => listed.clear(),
            Event::InitApply(object) => drop(listed.insert(key(object))),
            Event::InitDone => {
                part.states.retain(|key| listed.contains(key));
                let clusters: HashSet<&str> = listed.iter().map(|(namespace, _)| namespace.as_str()).collect();
                part.watched.retain(|cluster| clusters.contains(cluster.as_str()));
                accounts.wake_all();
            }
            Event::Apply(object) if is_news => accounts.wakes.push(&key(object).0, &key(object).1),
            Event::Apply(_) => {}
            Event::Delete(object) => {
                let key = key(object);
                part.states.forget(&key);
                if !accounts.are_in(&key.0) {
                    part.watched.retain(|cluster| cluster.as_str() != key.0);
                }
            }
        }
    };
    follow::each(raw::watcher(api, config), "ManagedServiceAccounts", apply).await;
}

/// Whether an event wakes the account. Our own writes of its status contain what the member
/// reports, and a member that reports something else each time must not keep this part busy.
fn is_news(accounts: &Accounts, event: &Event<DynamicObject>) -> bool {
    let Event::Apply(new) = event else { return false };
    let (namespace, name) = key(new);
    let Some(old) = accounts.store.get(&accounts.reference(&namespace, &name)) else { return true };
    let said = |object: &DynamicObject| {
        let metadata = &object.metadata;
        let finalizers = metadata.finalizers.clone();
        (metadata.uid.clone(), metadata.generation, metadata.deletion_timestamp.clone(), finalizers)
    };
    said(new) != said(&old)
}

/// Removes fields that are not read, because thousands of objects are kept.
fn prune(object: &mut DynamicObject) {
    object.managed_fields_mut().clear();
    object.metadata.owner_references = None;
    object.annotations_mut().clear();
    object.labels_mut().clear();
    if object.data.to_string().len() > LARGEST {
        object.data = Value::Null;
    }
}

fn key(object: &DynamicObject) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// Follows the Secrets with tokens, without their data. Never ends.
pub async fn tokens(hub: &Client, accounts: &Accounts) {
    let config = paged().labels(&format!("{LABEL}=true"));
    let events = watcher(Api::<Meta>::all(hub.clone()), config);
    let apply = |event: Event<Meta>| match event {
        Event::Apply(secret) | Event::Delete(secret) => {
            accounts.wake(&secret.namespace().unwrap_or_default(), &secret.name_any());
        }
        // Any Secret may have changed before the watch. The queue holds each account once.
        Event::InitDone => accounts.wake_all(),
        Event::Init | Event::InitApply(_) => {}
    };
    follow::each(events, "the Secrets of ManagedServiceAccounts", apply).await;
}

/// Follows the registrations of clusters. Never ends.
pub async fn clusters(part: &Part, secrets: &Secrets) {
    let config = paged().labels(CREDENTIAL_TYPE_LABEL);
    let apply = |event: Event<Meta>| match event {
        Event::Apply(cluster) => part.accounts.wake_in(&cluster.name_any()),
        Event::Delete(cluster) => {
            let name = cluster.name_any();
            part.watched.retain(|cluster| cluster.as_str() != name);
            // An account that waits for the end of its cluster need not wait any more.
            part.accounts.wake_in(&name);
        }
        Event::InitDone => part.accounts.wake_all(),
        Event::Init | Event::InitApply(_) => {}
    };
    follow::each(watcher(secrets.metadata(), config), "the Secrets of clusters", apply).await;
}

// === impl Members ===

impl Members {
    /// Watches a member's `ServiceAccounts`, unless a watch runs.
    pub fn follow(&self, cluster: &ClusterName, sender: impl FnOnce() -> Sender, accounts: &Accounts) {
        let mut members = self.0.lock();
        if members.contains_key(cluster) || members.len() >= MOST_MEMBERS {
            return;
        }
        let sender = sender().bounded(MOST_WATCHED).paced(BETWEEN_REQUESTS);
        let follow = follow(cluster.clone(), sender, accounts.clone());
        members.insert(cluster.clone(), AbortOnDropHandle::new(tokio::spawn(follow)));
    }

    pub fn retain(&self, is_there: impl Fn(&ClusterName) -> bool) {
        self.0.lock().retain(|cluster, _| is_there(cluster));
    }
}

async fn follow(cluster: ClusterName, sender: Sender, accounts: Accounts) {
    let resource = hub_calls::resource("", "v1", "ServiceAccount", "serviceaccounts");
    let sight = Sight::new(sender, &resource, MEMBER_NAMESPACE).selecting(format!("{LABEL}=true"));
    // Changed ServiceAccounts of existing accounts. A member that never stops changing them causes
    // one check per second.
    let (changed, news) = (Mutex::<HashSet<String>>::default(), Notify::new());
    let take = |_: Change, name: &str, _: &str| {
        if accounts.has(cluster.as_str(), name) {
            changed.lock().insert(name.to_owned());
            news.notify_one();
        }
    };
    let watching = async {
        let mut failures: u32 = 0;
        loop {
            let began = Instant::now();
            let failure = match sight.list(|_, _| ()).await {
                Ok(version) => {
                    // Any ServiceAccount may have changed before the watch.
                    accounts.wake_in(cluster.as_str());
                    sight.watch(version, take).await
                }
                Err(failure) => failure,
            };
            tracing::debug!(%cluster, %failure, "cannot watch the member's ServiceAccounts");
            failures = if began.elapsed() < LIVES { failures.saturating_add(1) } else { 0 };
            sleep(Backoff::MEMBER.wait(failures)).await;
        }
    };
    let telling = async {
        loop {
            news.notified().await;
            for name in std::mem::take(&mut *changed.lock()) {
                accounts.wakes.push(cluster.as_str(), &name);
            }
            sleep(BETWEEN_LOOKS).await;
        }
    };
    select! { () = watching => {}, () = telling => {} }
}
