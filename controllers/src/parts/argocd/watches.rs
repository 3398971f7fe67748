//! Watches of clusters, their Secrets and the ServiceAccount. They update the inventory and fill
//! the queue.

use std::collections::HashSet;

use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::{self, Event};
use kube::{Api, ResourceExt as _};
use tokio::sync::watch;

use super::inventory::List;
use super::publisher::Publisher;
use super::secret::{CLUSTER_KEY, HeldSecret, cluster_of};
use crate::args::Argocd;
use crate::calls::{paged, watcher};
use crate::feed::follow::{self, Change};
use crate::parts::watched;
use crate::parts::worker::Worker as _;
use crate::raw::{Bounded, Meta};
use crate::sources::{Kind, MANAGED_CLUSTERS};
use crate::wakes::Wakes;

pub const SECRETS: Kind = Kind { group: "", name: "Secret", plural: "secrets", versions: &["v1"], is_custom: false };

/// Follows clusters and their Secrets. Never ends.
pub async fn follow(publisher: &Publisher, wakes: &Wakes, mut writer: Writer<DynamicObject>) {
    let config = paged();
    let mut known = HashSet::new();
    let take = |event: Event<DynamicObject>| take_cluster(publisher, wakes, (&mut writer, &mut known), event);
    let clusters = watched::follow(&MANAGED_CLUSTERS, publisher.hub.client.clone(), config, take);
    tokio::join!(clusters, follow_secrets(publisher, wakes));
}

fn take_cluster(
    publisher: &Publisher,
    wakes: &Wakes,
    (writer, known): (&mut Writer<DynamicObject>, &mut HashSet<String>),
    event: Event<DynamicObject>,
) {
    let inventory = &publisher.inventory;
    let put = |cluster: &DynamicObject| {
        inventory.put_cluster(&cluster.name_any(), cluster.data["spec"]["hubAcceptsClient"] == true);
        cluster.name_any()
    };
    let (mut woken, mut is_listed) = (None, false);
    match &event {
        Event::Init | Event::InitDone => is_listed = matches!(event, Event::InitDone),
        Event::InitApply(cluster) | Event::Apply(cluster) => woken = Some(put(cluster)),
        Event::Delete(cluster) => {
            inventory.remove_cluster(&cluster.name_any());
            publisher.tries().forget("", &cluster.name_any());
        }
    }
    writer.apply_watcher_event(&event.modify(watched::name_only));
    if is_listed {
        let listed: HashSet<String> = writer.as_reader().state().iter().map(|cluster| cluster.name_any()).collect();
        known.difference(&listed).for_each(|name| publisher.tries().forget("", name));
        inventory.list_clusters(&listed);
        *known = listed;
    }
    if let Some(name) = woken {
        wakes.push("", &name);
        known.insert(name);
    }
}

async fn follow_secrets(publisher: &Publisher, wakes: &Wakes) {
    let config = paged().labels(CLUSTER_KEY);
    let namespace = publisher.secrets.namespace().unwrap_or_default();
    let api: Api<Bounded<Secret>> = Api::namespaced(publisher.hub.client.clone(), namespace);
    let events = watcher(api, config);
    let inventory = &publisher.inventory;
    let apply = |event: Event<Bounded<Secret>>| match event {
        Event::Init => inventory.begin_secrets(),
        Event::InitApply(secret) | Event::Apply(secret) => match HeldSecret::read(&secret.object) {
            Some((cluster, held)) => {
                wakes.push("", &cluster);
                inventory.put_secret(cluster, held);
            }
            None => gone(publisher, wakes, &secret.name_any()),
        },
        Event::InitDone => {
            inventory.end_secrets();
            inventory.was_listed(List::Secrets);
            inventory.clusters().iter().for_each(|cluster| wakes.push("", cluster));
        }
        Event::Delete(secret) => gone(publisher, wakes, &secret.name_any()),
    };
    follow::each(events, "the Secrets in Argo CD's namespace", apply).await;
}

/// A Secret is gone, or has lost the label.
fn gone(publisher: &Publisher, wakes: &Wakes, secret: &str) {
    let Some(cluster) = cluster_of(secret) else { return };
    let was_known = publisher.inventory.remove_secret(cluster);
    wakes.push("", cluster);
    // If the publisher needs a Secret, it finds this one by its name.
    if was_known && !publisher.inventory.is_accepted(cluster) {
        publisher.inventory.strayed.notify_one();
    }
}

/// Sends the UID of the ServiceAccount, or None while there is none. Never ends.
pub async fn follow_account(argocd: &Argocd, publisher: &Publisher, uid: watch::Sender<Option<String>>) {
    let (namespace, name) = &argocd.account;
    let api: Api<Meta<ServiceAccount>> = Api::namespaced(publisher.hub.client.clone(), namespace);
    let only = paged().fields(&format!("metadata.name={name}"));
    let apply = |change: Change<Meta<ServiceAccount>>| {
        let known = match change {
            Change::Listed(accounts) => accounts.first().and_then(kube::ResourceExt::uid),
            Change::Applied(account) => account.uid(),
            Change::Deleted(_) => None,
        };
        if known.is_none() {
            tracing::warn!(namespace, name, "Argo CD's ServiceAccount is not there: create it");
        }
        uid.send_if_modified(|before| {
            let is_news = *before != known;
            *before = known;
            is_news
        });
    };
    let what = format!("Argo CD's ServiceAccount {name} in namespace {namespace}");
    follow::each(watcher::watcher(api, only), what, follow::whole(apply)).await;
}
