//! Decides whether a hub that answers 404 has no `ManagedCluster`s, or only fails to find them.
//!
//! A hub answers 404 while a definition is replaced, while it starts, and when a proxy in front of
//! it is wrong. The clusters' addresses depend on the answer, so discovery must confirm it, and
//! where it would change something, it must stay the same for some time.

use std::time::Duration;

use api::hub_object;
use api::managed_cluster::GROUP;
use serde::Deserialize;
use tokio::time::Instant;

use crate::hub::{Collection, Hub, HubFailure};

/// How long a hub that had the kind must be without it.
const GONE_AFTER: Duration = Duration::from_mins(1);
/// Interval of checks meanwhile, so that a return of the kind is seen.
const ASK_AGAIN: Duration = Duration::from_secs(5);

/// The time for which the kind has been absent.
#[derive(Default)]
pub struct Absence {
    /// When the first of the unbroken 404s came.
    since: Option<Instant>,
}

/// What a 404 means.
pub enum Verdict {
    /// The hub has no such kind.
    Absent,
    /// Perhaps. Ask again after this time.
    Doubtful(Duration),
    /// No conclusion is possible.
    Failed(HubFailure),
}

/// `metav1.APIGroupList`. An answer without groups is invalid.
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
    /// Judges the hub's answer `not_found`; `was_there`: it had the kind before.
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

/// Whether discovery has the group. Reads the list of groups, and not the group itself, because
/// another 404 would be no evidence.
pub async fn names_group(hub: &Hub) -> Result<bool, HubFailure> {
    let list = hub.list(Collection::ApiGroups, "").await?;
    let unreadable = |_| HubFailure::unreadable(Collection::ApiGroups);
    let Groups { groups } = hub_object::parse(&list).map_err(unreadable)?;
    Ok(groups.iter().any(|group| group.name == GROUP))
}

/// What an operator can do about a failure, if that is known.
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
