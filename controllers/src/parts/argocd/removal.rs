//! Removes the Secrets of clusters that are gone or no longer accepted. If many clusters went at
//! once, which is more likely a mistake, their Secrets stay for ten minutes. The Secret of a
//! cluster that a list lacks stays until another list lacks it too.

use std::collections::HashSet;
use std::time::Duration;

use kube::Api;
use kube::api::{DynamicObject, ListParams};
use tokio::time::{Instant, sleep_until};

use super::NAME;
use super::publisher::Publisher;
use super::secret::secret_name;
use crate::calls::deleting;
use crate::feed::crd;
use crate::metrics::Operation;
use crate::parts::hub_calls::{self, CallError, found, managed_clusters};
use crate::sources::MANAGED_CLUSTERS;

/// Wait after a removal that failed, and wait while none is due.
const AGAIN: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_hours(1);

/// Removes Secrets when they are due. Never ends.
pub async fn run(publisher: &Publisher) {
    loop {
        let again = remove_due(publisher).await;
        tokio::select! {
            () = sleep_until(again) => {}
            () = publisher.inventory.moved.notified() => {}
        }
    }
}

/// Removes the Secrets that are due. Returns the time of the next check.
async fn remove_due(publisher: &Publisher) -> Instant {
    let due = publisher.inventory.due();
    publisher.metrics.argocd.held.set(i64::try_from(due.held).unwrap_or(i64::MAX));
    if due.held > 0 {
        tracing::warn!(
            count = due.held,
            "too many clusters disappeared at once: their Secrets for Argo CD stay for 10 minutes"
        );
    }
    let again =
        if due.is_to_list { list_again(publisher).await } else { due.again.unwrap_or_else(|| Instant::now() + LONG) };
    if due.now.is_empty() {
        return again;
    }
    // Deletions of clusters may arrive before the deletion of their kind's definition.
    if crd::is_leaving(&MANAGED_CLUSTERS, &publisher.hub.client).await {
        publisher.inventory.doubt();
        return again.min(Instant::now() + AGAIN);
    }
    let mut has_failed = false;
    for (cluster, uid, version) in &due.now {
        if let Err(error) = remove(publisher, cluster, uid, version).await {
            // After a conflict, the watch is about to report the newer Secret.
            if !error.is_conflict() {
                publisher.metrics.failed(NAME);
            }
            tracing::warn!(%error, cluster, "its Secret for Argo CD is not removed yet");
            has_failed = true;
            if error.concerns_all() {
                break;
            }
        }
    }
    publisher.count();
    if has_failed { again.min(Instant::now() + AGAIN) } else { again }
}

/// Lists the clusters again, because some are missing. Returns the time of the next check.
async fn list_again(publisher: &Publisher) -> Instant {
    let clusters: Api<DynamicObject> = Api::all_with(publisher.hub.client.clone(), &managed_clusters());
    match hub_calls::list_metadata(&clusters, ListParams::default()).await {
        Ok(all) => {
            let names: HashSet<String> = all.into_iter().filter_map(|metadata| metadata.name).collect();
            publisher.inventory.confirm(&names);
            Instant::now()
        }
        Err(error) => {
            tracing::warn!(%error, "clusters that a list lacks were not listed again: their Secrets for Argo CD stay");
            Instant::now() + AGAIN
        }
    }
}

/// Removes a Secret at the known version. A Secret that has changed since is checked again.
async fn remove(publisher: &Publisher, cluster: &str, uid: &str, version: &str) -> Result<(), CallError> {
    let (name, parameters) = (secret_name(cluster), deleting(uid, Some(version)));
    let call = publisher.secrets.delete(&name, &parameters);
    found(publisher.hub.write(call).await)?;
    publisher.inventory.remove_secret(cluster);
    publisher.metrics.argocd.wrote(Operation::Delete);
    tracing::info!(cluster, "its Secret for Argo CD was removed, because the cluster is gone or no longer accepted");
    Ok(())
}
