//! Clusters from the hub: watches the labelled Secrets in one namespace.

mod following;

use std::collections::HashSet;
use std::time::Duration;

use api::secret::CREDENTIAL_TYPE_LABEL;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::WatchStreamExt;
use kube::{Api, Client};
use net::words::causes;
use tokio::sync::watch::Receiver;
use tokio::time::{Instant, timeout_at};

use self::following::{Following, LIST_WITHIN, WATCH_WITHIN};
use super::Registry;
use crate::hub::{paged, watcher};

/// Shortest interval between logged errors: a hub that is down must not fill the log.
const COMPLAIN_EVERY: Duration = Duration::from_secs(30);

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
