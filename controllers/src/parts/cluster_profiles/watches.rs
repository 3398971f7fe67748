//! What the publisher follows: the Secrets that register clusters, without their data, and the
//! profiles of the namespaces that it publishes into.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::store::Writer as StoreWriter;
use kube::runtime::watcher::{self, Config, Event};
use kube::{Api, ResourceExt as _};
use net::words::causes;

use super::publisher::Publisher;
use crate::calls::PAGE;
use crate::raw::{self, RawObject};
use crate::secrets::Meta;

/// Follows all of it for `publisher`; `store` gets the Secrets. Never ends.
pub async fn follow(publisher: &Arc<Publisher>, store: StoreWriter<Meta>) {
    let profiles = publisher.profiles().map(|(name, api)| profiles(Arc::clone(publisher), name.clone(), api));
    tokio::join!(secrets(publisher, publisher.secrets(), store), join_all(profiles));
}

/// Follows the clusters' Secrets. Never ends.
async fn secrets(publisher: &Publisher, api: Api<Meta>, mut store: StoreWriter<Meta>) {
    let labelled = Config::default().labels(api::secret::CREDENTIAL_TYPE_LABEL);
    let mut events = pin!(watcher::watcher(api, labelled).default_backoff());
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        let event = match event {
            Ok(event) => event.modify(prune),
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    "cannot watch the Secrets of clusters: their ClusterProfiles stay as they are"
                );
                continue;
            }
        };
        store.apply_watcher_event(&event);
        match event {
            Event::Init => listed.clear(),
            Event::InitApply(secret) => listed.push(secret),
            Event::InitDone => publisher.registered(std::mem::take(&mut listed)),
            Event::Apply(secret) => publisher.changed(&secret),
            Event::Delete(secret) => publisher.unregistered(&secret.name_any()),
        }
    }
}

/// Who wrote it is not asked.
fn prune(secret: &mut Meta) {
    secret.metadata.managed_fields = None;
    secret.metadata.owner_references = None;
}

/// Follows the profiles of a namespace. Never ends.
async fn profiles(publisher: Arc<Publisher>, namespace: String, api: Api<RawObject>) {
    let mut events = pin!(raw::watcher(api, Config::default().page_size(PAGE)).default_backoff());
    let mut listed = Vec::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(profile)) => listed.push(profile),
            Ok(Event::InitDone) => publisher.listed(&namespace, std::mem::take(&mut listed)),
            Ok(Event::Apply(profile)) => publisher.seen(&namespace, profile),
            Ok(Event::Delete(profile)) => publisher.gone(&namespace, &profile),
            Err(error) => {
                tracing::warn!(
                    error = causes(&error),
                    namespace,
                    "cannot watch ClusterProfiles: none is published there"
                );
            }
        }
    }
}
