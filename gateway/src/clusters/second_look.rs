//! Asks the hub before the gateway responds that there is no such cluster.
//!
//! The snapshot lags behind the Secrets by milliseconds, and by more under load. A client that
//! registers a cluster and uses it at once would get "no such cluster", and clients take that as
//! final. So the hub is asked first whether it has the Secret: once for all requests that wait for
//! one name, for few names at a time and per second. The answer is cached briefly.
//!
//! The answer never becomes a cluster. The watch stays the only source of clusters: a delayed
//! answer could bring back a deleted one, or replace a newer Secret with an older one. A request
//! for a registered cluster waits until the snapshot is as new as the answer.

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

/// How long the watch may take to deliver a Secret that the hub has. Most take milliseconds; an
/// interrupted watch is back within seconds.
const CATCH_UP: Duration = Duration::from_secs(5);
/// Names whose answers are cached, and names with a question in flight or waiting. Requests for
/// further names get the snapshot's answer.
const NAMES: CacheLimits = CacheLimits { kept: 1024, pending: 128 };

/// Asks and waits. Only for authorized requests: others must not learn which clusters exist.
pub struct SecondLook {
    clusters: Arc<Clusters>,
    answers: Cache<ClusterName, Answer>,
    questions: Arc<Questions>,
}

// === impl SecondLook ===

impl SecondLook {
    /// Runs questions as tasks of `runtime`.
    pub fn new(hub: Hub, clusters: Arc<Clusters>, runtime: &Handle, metrics: SecondLooks) -> Self {
        let answers = Cache::new(runtime.clone(), NAMES);
        Self { clusters, answers, questions: Arc::new(Questions::new(hub, metrics)) }
    }

    /// The cluster of a name that is not in the snapshot.
    pub async fn cluster(&self, name: &ClusterName) -> Result<Arc<Cluster>, LookupError> {
        let answer = self.answer(name).await;
        if let Answer::Found { version } = answer {
            return self.caught_up(name, version).await;
        }
        // The watch may have been faster than the answer.
        match (self.clusters.get(name), answer) {
            (Err(LookupError::Absent), Answer::Failed) => Err(LookupError::Unanswered),
            // If the hub cannot be asked, or not now, the snapshot decides: it is right except for
            // its short lag.
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

    /// The snapshot's answer once it is as new as `version`.
    async fn caught_up(&self, name: &ClusterName, version: u64) -> Result<Arc<Cluster>, LookupError> {
        let mut changed = self.clusters.subscribe();
        let seen = async {
            loop {
                let snapshot = self.clusters.snapshot();
                match snapshot.get(name) {
                    Err(LookupError::Absent) if !snapshot.covers(version) => {}
                    // Also an absent cluster: it was deleted since.
                    known => return known,
                }
                // The sender is ours, and alive.
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
    /// Whether the snapshot has all changes up to `version`. Never true too early; after a list,
    /// the snapshot's own version may be an earlier one.
    fn covers(&self, version: u64) -> bool {
        self.resource_version.parse::<u64>().is_ok_and(|own| own >= version)
    }
}

#[cfg(test)]
mod tests;
