//! Removes the Secrets of clusters that are gone, or accepted no more: not of a crowd that went at
//! once, which is rather a mistake, for ten minutes.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::NAME;
use super::publisher::Publisher;
use super::secret::secret_name;
use super::watches::CLUSTERS;
use crate::calls::deleting;
use crate::feed::crd;
use crate::metrics::Operation;
use crate::parts::hub::{CallError, found};

/// After a removal that failed, and while nothing says when to look.
const AGAIN: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_hours(1);

/// Never ends.
pub async fn run(publisher: &Publisher) {
    loop {
        let again = remove_due(publisher).await;
        tokio::select! {
            () = sleep_until(again) => {}
            () = publisher.state.moved.notified() => {}
        }
    }
}

/// Returns when to look again.
async fn remove_due(publisher: &Publisher) -> Instant {
    let due = publisher.state.due();
    publisher.metrics.argocd.held.set(i64::try_from(due.held).unwrap_or(i64::MAX));
    if due.held > 0 {
        tracing::warn!(
            count = due.held,
            "too many clusters went at once: their Secrets for Argo CD stay for 10 minutes"
        );
    }
    let again = due.again.unwrap_or_else(|| Instant::now() + LONG);
    if due.now.is_empty() {
        return again;
    }
    // The end of each cluster may be told before that of its kind.
    if crd::is_leaving(&CLUSTERS, &publisher.hub.client).await {
        return again.min(Instant::now() + AGAIN);
    }
    let mut has_failed = false;
    for (cluster, uid, version) in &due.now {
        if let Err(error) = remove(publisher, cluster, uid, version).await {
            publisher.metrics.failed(NAME);
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

/// One that is another by now is looked at again.
async fn remove(publisher: &Publisher, cluster: &str, uid: &str, version: &str) -> Result<(), CallError> {
    let (name, parameters) = (secret_name(cluster), deleting(uid, Some(version)));
    let call = publisher.secrets.delete(&name, &parameters);
    found(publisher.hub.write(call).await)?;
    publisher.state.remove_secret(cluster);
    publisher.metrics.argocd.wrote(Operation::Delete);
    tracing::info!(cluster, "its Secret for Argo CD was removed, because the cluster is gone or accepted no more");
    Ok(())
}
