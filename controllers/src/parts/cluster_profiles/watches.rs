//! Watches of the publisher: the clusters' Secrets without their data, and the profiles in the
//! namespaces that it publishes into.

use std::sync::Arc;

use futures_util::future::join_all;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer as StoreWriter;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt as _};

use super::publisher::Publisher;
use crate::calls::{paged, watcher};
use crate::feed::follow::{self, Change};
use crate::raw::{self, RawObject};
use crate::secrets::Meta;

/// Runs all watches for `publisher`; `store` receives the Secrets. Never ends.
pub async fn follow(publisher: &Arc<Publisher>, store: StoreWriter<Meta>) {
    let profiles = publisher.profiles().map(|(name, api)| profiles(Arc::clone(publisher), name.clone(), api));
    tokio::join!(secrets(publisher, publisher.secrets(), store), join_all(profiles));
}

/// Follows the clusters' Secrets. Never ends.
async fn secrets(publisher: &Publisher, api: Api<Meta>, mut store: StoreWriter<Meta>) {
    let labelled = paged().labels(api::secret::CREDENTIAL_TYPE_LABEL);
    let mut whole = follow::whole(|change: Change<Meta>| match change {
        Change::Listed(listed) => publisher.registered(listed),
        Change::Applied(secret) => publisher.changed(&secret),
        Change::Deleted(secret) => publisher.unregistered(&secret.name_any()),
    });
    let apply = |event: Event<Meta>| {
        let event = event.modify(prune);
        store.apply_watcher_event(&event);
        whole(event);
    };
    let what = "the Secrets of clusters: their ClusterProfiles stay as they are";
    follow::each(watcher(api, labelled), what, apply).await;
}

/// Removes metadata that is not read.
fn prune(secret: &mut Meta) {
    secret.metadata.managed_fields = None;
    secret.metadata.owner_references = None;
}

/// Follows the profiles of a namespace. Never ends.
async fn profiles(publisher: Arc<Publisher>, namespace: String, api: Api<RawObject>) {
    let events = raw::watcher(api, paged());
    let apply = |change: Change<DynamicObject>| match change {
        Change::Listed(listed) => publisher.listed(&namespace, listed),
        Change::Applied(profile) => publisher.seen(&namespace, profile),
        Change::Deleted(profile) => publisher.gone(&namespace, &profile),
    };
    let what = format!("ClusterProfiles in namespace {namespace}: none is published there");
    follow::each(events, what, follow::whole(apply)).await;
}
