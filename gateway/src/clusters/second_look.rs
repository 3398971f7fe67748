//! A second look at the hub before a name is said to be no cluster's.
//!
//! The snapshot follows the Secrets by milliseconds, and by more under load. A client that
//! registers a cluster and uses it at once would read "no such cluster", and clients take that for
//! good. So the hub is asked first whether it has the Secret: once for all that wait for the same
//! name, few names at a time and per second, and its answer is kept for a moment.
//!
//! What is read here never becomes a cluster. The watch stays the one source of those: an answer
//! that was long on its way could bring back what has been deleted since, or an older Secret over a
//! newer one. A request for a cluster that is there waits until the snapshot is as new as the
//! answer.

mod question;

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use auth::{Cache, CacheLimits, ReviewError};
use tokio::runtime::Handle;
use tokio::time::timeout;

use self::question::{Answer, Questions};
use super::{Cluster, Clusters, LookupError, Snapshot};
use crate::hub::Hub;
use crate::metrics::SecondLooks;

/// How long the watch may take to bring what the hub is known to have. Most take milliseconds; one
/// that broke off is back within seconds.
const CATCH_UP: Duration = Duration::from_secs(5);
/// Names whose answers are kept, and names that are being asked about or wait for their turn.
/// Requests for others get the answer that the snapshot gives.
const NAMES: CacheLimits = CacheLimits { kept: 1024, pending: 128 };

/// Asks, and waits. For authorized requests: others must not learn which clusters exist.
pub struct SecondLook {
    clusters: Arc<Clusters>,
    answers: Cache<ClusterName, Answer>,
    questions: Arc<Questions>,
}

// === impl SecondLook ===

impl SecondLook {
    /// Questions are tasks of `runtime`.
    pub fn new(hub: Hub, clusters: Arc<Clusters>, runtime: &Handle, metrics: SecondLooks) -> Self {
        let answers = Cache::new(runtime.clone(), NAMES);
        Self { clusters, answers, questions: Arc::new(Questions::new(hub, metrics)) }
    }

    /// The cluster of a name that the snapshot has not.
    pub async fn cluster(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        let answer = self.answer(name).await;
        if let Answer::Found { version } = answer {
            return self.caught_up(name, version).await;
        }
        // The watch may have been faster than the answer.
        match (self.clusters.get(name), answer) {
            (Err(LookupError::Absent), Answer::Failed) => Err(LookupError::Unanswered),
            // Where the hub cannot be asked, or not now, the snapshot decides: it is right but for
            // that moment.
            (known, _) => known,
        }
    }

    async fn answer(&self, name: &ClusterName) -> Answer {
        let (questions, asked) = (Arc::clone(&self.questions), name.clone());
        let load = |stage| async move { Ok(questions.ask(&asked, stage).await) };
        match self.answers.get_or_load(Arc::new(name.clone()), load).await {
            Ok(answer) => answer,
            Err(ReviewError::Busy(_)) => self.questions.refused(),
            Err(_) => Answer::Failed,
        }
    }

    /// What the snapshot says once it is as new as `version`.
    async fn caught_up(&self, name: &ClusterName, version: u64) -> Result<Arc<Cluster>, LookupError> {
        let mut changed = self.clusters.subscribe();
        let seen = async {
            loop {
                let snapshot = self.clusters.snapshot();
                match snapshot.get(name) {
                    Err(LookupError::Absent) if !snapshot.covers(version) => {}
                    // Absent all the same: deleted since.
                    known => return known,
                }
                // The sender is ours and alive.
                let _ = changed.changed().await;
            }
        };
        timeout(CATCH_UP, seen).await.unwrap_or_else(|_| {
            self.questions.late(name, CATCH_UP);
            Err(LookupError::Late)
        })
    }
}

// === impl Snapshot ===

impl Snapshot {
    /// Whether it has everything that happened up to `version`. Never wrongly so: after a list its
    /// own version may be an earlier one.
    fn covers(&self, version: u64) -> bool {
        self.resource_version.parse::<u64>().is_ok_and(|own| own >= version)
    }
}

#[cfg(test)]
mod tests;
