//! Clusters from the hub: one watch of the labelled Secrets in one namespace.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use api::secret::{CREDENTIAL_TYPE_LABEL, SecretView};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};

use super::Registry;

/// Errors are logged at most this often: a hub that is down must not fill the log.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

/// Follows the Secrets for ever. Errors of the hub are retried with back-off; meanwhile the last snapshot stays.
pub async fn run(client: Client, namespace: String, mut registry: Registry) {
    let secrets: Api<Secret> = Api::namespaced(client, &namespace);
    let config = watcher::Config::default().labels(CREDENTIAL_TYPE_LABEL);
    let mut events = std::pin::pin!(watcher::watcher(secrets, config).default_backoff());
    let mut listed = HashSet::new();
    let mut complained = None::<tokio::time::Instant>;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitApply(secret)) => {
                listed.extend(secret.metadata.name.clone());
                apply(&mut registry, secret);
            }
            Ok(Event::InitDone) => {
                registry.retain(&listed);
                listed.clear();
                registry.publish(true);
            }
            Ok(Event::Apply(secret)) => {
                apply(&mut registry, secret);
                registry.publish(false);
            }
            Ok(Event::Delete(secret)) => {
                registry.saw_resource_version(secret.metadata.resource_version.as_deref().unwrap_or_default());
                registry.remove(secret.metadata.name.as_deref().unwrap_or_default());
                registry.publish(false);
            }
            Err(error) => {
                if complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
                    complained = Some(tokio::time::Instant::now());
                    tracing::warn!(namespace, %error, "cannot watch cluster Secrets on the hub, trying again");
                }
            }
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
