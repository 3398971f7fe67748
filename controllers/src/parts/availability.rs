//! Reports whether clusters are available that have no agent to report it, because the hub delivers
//! to them. It probes their members through the gateway, as often as an agent would renew its
//! Lease.
//!
//! `register::ocm::availability` decides; this part connects it with the hub. While upstream's
//! registration controllers run, this part does nothing: they take the missing Lease for silence,
//! and would revert each condition.

mod agents;
mod judge;
mod watches;

use std::sync::Arc;

use kube::Api;
use kube::runtime::reflector::store::Writer;
use register::ocm;
use tokio::sync::Semaphore;

use self::judge::{DOUBTFUL, Judge};
use super::hub_calls::{self, LeaderClient};
use super::rivals::{Place, Rival};
use super::stand_in::StandIn;
use super::{Context, worker};
use crate::args::PartName;
use crate::wakes::Wakes;

/// Condition in `/readyz`: upstream's registration controllers run.
pub const RIVAL: &str = "availability-rival";
/// Upstream's registration controllers.
const THEIRS: StandIn = StandIn {
    part: PartName::Availability,
    rival: Rival {
        lease: ocm::rival::LEASE,
        // With this part alone, nothing on the hub grants the right to read their Deployment, and
        // without it the part would do nothing.
        deployment: None,
        place: Place::Usual(ocm::rival::may_be_theirs),
        reason: RIVAL,
    },
    role: "registration of ManagedClusters",
    begins: "availability probes the clusters that are delivered to without an agent",
    may_run_beside: false,
};

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    THEIRS.run(&context, work).await;
}

/// Judges the clusters. Never ends.
async fn work(context: Context<'_>) {
    let hub = LeaderClient::of(&context);
    let writer = Writer::new(hub_calls::managed_clusters());
    let (store, wakes) = (writer.as_reader(), Wakes::default());
    let judge = Arc::new(Judge {
        api: Api::all_with(hub.client.clone(), &hub_calls::managed_clusters()),
        hub,
        members: context.members.clone(),
        metrics: context.metrics.clone(),
        events: context.events.clone(),
        is_beside_registration: context.config.parts.contains(&PartName::OcmRegistration),
        agents: agents::Agents::default(),
        states: judge::ProbeStates::default(),
        doubtful: Semaphore::new(DOUBTFUL),
        tries: worker::Tries::default(),
        answered: context.answered.clone(),
    });
    let _counting = context.metrics.counting(|metrics| metrics.availability.clear());
    tokio::join!(
        watches::follow(&judge, &wakes, writer),
        worker::run(Arc::clone(&judge), wakes.clone(), store, hub_calls::managed_clusters()),
    );
}
