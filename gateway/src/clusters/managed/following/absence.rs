//! Whether a hub that answers 404 has no `ManagedCluster`s, or has mislaid them.
//!
//! A hub says 404 while a definition is replaced, while it starts, and when something in front of
//! it is wrong. Where clusters are hangs on the answer, so a second one is asked for, and where it
//! would change anything it has to stay the same for a while.

use std::time::Duration;

use api::hub_object;
use api::managed_cluster::GROUP;
use serde::Deserialize;
use tokio::time::Instant;

use crate::hub::{Collection, Hub, HubFailure};

/// For so long must a hub that had the kind have nothing of it.
const GONE_AFTER: Duration = Duration::from_mins(1);
/// How often it is asked meanwhile: presence in between is to be seen.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// That there may be nothing any more.
#[derive(Default)]
pub struct Absence {
    /// Since when every answer said so.
    since: Option<Instant>,
}

/// What a 404 means.
pub enum Verdict {
    /// There is no such kind.
    Absent,
    /// Perhaps; to be asked again after this time.
    Doubtful(Duration),
    /// Nothing is to be concluded.
    Failed(HubFailure),
}

/// `metav1.APIGroupList`. An answer without groups is none.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    name: String,
}

// === impl Absence ===

impl Absence {
    /// `not_found` is the hub's answer, `was_there` whether it had the kind.
    pub async fn weigh(&mut self, hub: &Hub, not_found: HubFailure, was_there: bool) -> Verdict {
        match names_group(hub).await {
            Ok(true) => return Verdict::Failed(not_found),
            Err(failure) => return Verdict::Failed(failure),
            Ok(false) if !was_there => return Verdict::Absent,
            Ok(false) => {}
        }
        if self.since.is_none() {
            tracing::warn!("the hub has no ManagedClusters now: keeping the last known ones for {GONE_AFTER:?}");
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let left = GONE_AFTER.saturating_sub(since.elapsed());
        if left.is_zero() { Verdict::Absent } else { Verdict::Doubtful(left.min(ASK_AGAIN)) }
    }
}

/// Whether discovery knows the group. Its list is asked for, not the group itself: another 404
/// would be no evidence.
pub async fn names_group(hub: &Hub) -> Result<bool, HubFailure> {
    let list = hub.list(Collection::ApiGroups, "").await?;
    let unreadable = |_| HubFailure::unreadable(Collection::ApiGroups);
    let Groups { groups } = hub_object::parse(&list).map_err(unreadable)?;
    Ok(groups.iter().any(|group| group.name == GROUP))
}

/// What an operator can do about a failure, where that is known.
pub fn next_step(failure: &HubFailure) -> Option<&'static str> {
    match (failure.collection, failure.code()) {
        (Collection::ManagedClusters, Some(403)) => {
            Some("grant the gateway list and watch on managedclusters.cluster.open-cluster-management.io")
        }
        (Collection::ManagedClusters, Some(404)) => Some(
            "the hub has the API group cluster.open-cluster-management.io, but no managedclusters in it: install their \
             CustomResourceDefinition, or run without --ocm-integration",
        ),
        (Collection::ApiGroups, Some(403)) => {
            Some("grant the gateway get on the nonResourceURL /apis (system:discovery)")
        }
        _ => None,
    }
}
