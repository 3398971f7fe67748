//! Clusters from the hub: watches the labelled Secrets in one namespace.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use api::secret::{CREDENTIAL_TYPE_LABEL, SecretView};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::Event;
use kube::{Api, Client};
use net::words::causes;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use super::Registry;
use crate::hub::{paged, watcher};

/// Shortest interval between logged errors: a hub that is down must not fill the log.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

/// A list without an answer for this long is started again. Longer than the back-off between
/// attempts.
const LIST_WITHIN: Duration = Duration::from_secs(90);
/// Longest silence of a watch; the watcher asks the hub to end it after 290 s.
const WATCH_WITHIN: Duration = Duration::from_mins(10);

/// Follows the Secrets forever. Retries errors of the hub with back-off; meanwhile the last
/// snapshot stays.
pub async fn run(client: Client, namespace: String, registry: Registry) {
    let managed = registry.managed();
    let mut following = Following { registry, listed: None, complained: None };
    let mut relocated = None;
    if let Some(managed) = managed {
        relocated = Some(managed.subscribe());
        // Until then, a Secret alone may be only half of a cluster.
        managed.known().await;
    }
    loop {
        let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
        let config = paged().labels(CREDENTIAL_TYPE_LABEL);
        let mut events = std::pin::pin!(watcher(secrets, config).default_backoff());
        following.listed = Some(HashSet::new());
        let mut heard = Instant::now();
        loop {
            let patience = if following.listed.is_some() { LIST_WITHIN } else { WATCH_WITHIN };
            let next = tokio::select! {
                next = timeout_at(heard + patience, events.next()) => next,
                () = changed(&mut relocated) => {
                    following.relocate();
                    continue;
                }
            };
            heard = Instant::now();
            match next {
                Ok(Some(Ok(event))) => following.event(event),
                Ok(Some(Err(error))) => following.complain(&namespace, &causes(&error)),
                Ok(None) => break,
                Err(_) => {
                    following.complain(&namespace, &format!("no answer for {patience:?}"));
                    break;
                }
            }
        }
    }
}

async fn changed(changes: &mut Option<Receiver<()>>) {
    match changes {
        // The sender lives as long as the gateway.
        Some(changes) => drop(changes.changed().await),
        None => std::future::pending().await,
    }
}

struct Following {
    registry: Registry,
    /// The names of a list that is not complete yet.
    listed: Option<HashSet<String>>,
    complained: Option<Instant>,
}

// === impl Following ===

impl Following {
    fn event(&mut self, event: Event<Secret>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(secret) => {
                self.listed.get_or_insert_default().extend(secret.metadata.name.clone());
                apply(&mut self.registry, secret);
            }
            Event::InitDone => {
                self.registry.retain(&self.listed.take().unwrap_or_default());
                self.registry.relocate();
                self.registry.publish(true);
            }
            Event::Apply(secret) => {
                apply(&mut self.registry, secret);
                self.registry.publish(true);
            }
            Event::Delete(secret) => {
                self.registry.saw_resource_version(secret.metadata.resource_version.as_deref().unwrap_or_default());
                self.registry.remove(secret.metadata.name.as_deref().unwrap_or_default());
                self.registry.publish(true);
            }
        }
    }

    /// During a list, it waits for the list's end.
    fn relocate(&mut self) {
        if self.listed.is_none() && self.registry.relocate() {
            self.registry.publish(true);
        }
    }

    fn complain(&mut self, namespace: &str, error: &str) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::warn!(namespace, error, "cannot watch cluster Secrets on the hub, trying again");
        }
    }
}

fn apply(registry: &mut Registry, secret: Secret) {
    let empty = BTreeMap::new();
    let metadata = &secret.metadata;
    let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0.to_string());
    registry.saw_resource_version(metadata.resource_version.as_deref().unwrap_or_default());
    registry.apply(&SecretView {
        name: metadata.name.as_deref().unwrap_or_default(),
        uid: metadata.uid.as_deref().unwrap_or_default(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default(),
        creation_timestamp: created.as_deref(),
        labels: metadata.labels.as_ref().unwrap_or(&empty),
        annotations: metadata.annotations.as_ref().unwrap_or(&empty),
        data: &data,
    });
}
