//! Finds our Secrets that have lost the label that the watch selects, by their names and
//! annotations. Restores the label, or removes the Secret with its cluster.

use std::time::Duration;

use kube::api::ListParams;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::publisher::Publisher;
use super::secret::HeldSecret;
use crate::parts::hub_calls::{self, CallError};
use crate::wakes::Wakes;

/// Interval of searches in Argo CD's namespace, unless a Secret leaves the watch.
const LOOK: Duration = Duration::from_hours(1);
/// Shortest time between two searches.
const PAUSE: Duration = Duration::from_secs(10);

/// Searches regularly. Never ends.
pub async fn run(publisher: &Publisher, wakes: &Wakes) {
    loop {
        if let Err(error) = look(publisher, wakes).await {
            tracing::warn!(%error, "cannot look for Secrets for Argo CD that have lost our label");
        }
        let began = Instant::now();
        // A notification during the search starts another one after the pause.
        let _ = timeout_at(began + LOOK, publisher.inventory.strayed.notified()).await;
        sleep_until(began + PAUSE).await;
    }
}

pub async fn look(publisher: &Publisher, wakes: &Wakes) -> Result<(), CallError> {
    let all = hub_calls::list_metadata(&publisher.secrets, ListParams::default()).await?;
    for (cluster, held) in
        all.iter().filter_map(|metadata| HeldSecret::of(metadata, None)).filter(|(_, held)| held.is_stray)
    {
        if !publisher.inventory.put_stray(&cluster, held) {
            continue;
        }
        tracing::warn!(cluster, "the Secret for Argo CD lost its label: the label is restored, or the Secret removed");
        wakes.push("", &cluster);
    }
    Ok(())
}
