//! The status of the `ManagedCluster`: the facts about its member.

use std::convert::Infallible;
use std::time::Duration;

use http::StatusCode;
use hub::Cause;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::{Keeping, STEP, Troubles};
use crate::joining::member::{self, CachedFacts};
use crate::joining::status::{self, Facts};
use crate::joining::{JoinError, cluster};

/// Timeout for all requests to the member together: each call, and each page of nodes, has its own
/// timeout.
const WITHIN: Duration = Duration::from_mins(1);

// === impl Keeping ===

impl Keeping<'_> {
    /// Reports the member's status to the hub after each read of the cluster.
    pub(super) async fn tell(&self) -> Infallible {
        let (mut troubles, mut known) = (Troubles::default(), CachedFacts::default());
        let mut cluster = self.cluster.subscribe();
        loop {
            let accepted = self.accepted(&mut cluster).await;
            cluster.mark_unchanged();
            let wait = match self.report(&accepted, &mut known).await {
                Ok(true) => {
                    troubles.over();
                    None
                }
                // Another writer came in between: read its status first.
                Ok(false) => Some(STEP.wait(0)),
                Err(error) => Some(troubles.failed(&JoinError::Hub { what: "writing the status", error })),
            };
            if let Some(wait) = wait {
                sleep(wait).await;
                self.soon.notify_one();
            }
            // The sender is ours.
            let _ = cluster.changed().await;
        }
    }

    /// Returns false if another writer came after `cluster` was read.
    async fn report(&self, cluster: &Value, known: &mut CachedFacts) -> Result<bool, Cause> {
        let facts = timeout(WITHIN, self.facts(known)).await;
        let facts = facts.unwrap_or_else(|_| unavailable("the kube-apiserver does not answer in time"));
        let Some(patch) = status::patch(cluster, &facts, &api::time::now()) else {
            return Ok(true);
        };
        let path = cluster::path(&self.joining.cluster);
        match self.hub().merge(&format!("{path}/status"), &patch).await {
            Ok(_) => Ok(true),
            Err(error) if error.is(StatusCode::CONFLICT) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn facts(&self, known: &mut CachedFacts) -> Facts {
        match self.member {
            Some(member) => member::facts(member, known).await,
            // Whether it answers at all is known without a credential.
            None if self.joining.metrics.api_server_up.get() == 1 => {
                Facts { unavailable: Some(String::new()), ..Facts::default() }
            }
            None => unavailable("the kube-apiserver does not answer"),
        }
    }
}

fn unavailable(why: &str) -> Facts {
    Facts { unavailable: Some(why.to_owned()), ..Facts::default() }
}
