//! Keeps a `ManifestWork` for each cluster that the Placements of a `ManifestWorkReplicaSet`
//! choose, as Open Cluster Management's controller does, in its place.
//!
//! The crate `delivery` decides which clusters get the template next, and computes a set's status;
//! this part reads and writes the hub. It does not reach members: works' statuses, written by the
//! program that applies them, show their progress. Complete works of no set are deleted when their
//! time is over. While upstream's controller runs, this part does nothing.

mod deployer;
mod expiry;
mod kinds;
mod plan;
mod report;
mod watches;
mod world;
mod writes;

use std::sync::Arc;

use futures_util::future::join_all;
use kube::runtime::reflector::store::Writer;

use self::deployer::Deployer;
use self::expiry::Expiry;
use self::kinds::Of;
use self::world::World;
use super::rivals::{Place, Rival};
use super::stand_in::StandIn;
use super::{Context, watched, worker};
use crate::args::PartName;

/// Readiness condition in `/readyz`: upstream's controller runs.
pub const RIVAL: &str = "replica-sets-rival";
/// Readiness condition in `/readyz`: a kind was not listed yet. The log names it.
pub const UNLISTED: &str = "replica-sets-unlisted";
/// Its name in `--enable` and metrics.
const NAME: &str = PartName::ReplicaSets.as_str();

/// Upstream's work manager. An installation may use any namespace; its Lease is there.
const THEIRS: StandIn = StandIn {
    part: PartName::ReplicaSets,
    rival: Rival { lease: "work-manager-lock", deployment: None, place: Place::Any, reason: RIVAL },
    role: "controller of ManifestWorkReplicaSets",
    begins: "replica-sets keeps the works of ManifestWorkReplicaSets",
    may_run_beside: true,
};

/// Kinds by [`Of::index`].
type Shared = watched::Shared<World, { Of::ALL.len() }>;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    THEIRS.run(&context, work).await;
}

/// All writing work. Never ends.
async fn work(context: Context<'_>) {
    let shared = Shared::new(&context, World::new(context.config.rollout_needs_rules));
    let writer = Writer::new(Of::Set.resource());
    let store = writer.as_reader();
    let deployer = Arc::new(Deployer {
        hub: shared.hub.clone(),
        world: Arc::clone(&shared.world),
        events: context.events.clone(),
        metrics: context.metrics.clone(),
        tries: worker::Tries::default(),
    });
    let queue = async {
        // Without complete lists, works that must stay would be removed.
        let all =
            Of::ALL.map(|of| watched::listed(&shared.listed[of.index()], of.kind(), &context.readiness, UNLISTED));
        join_all(all).await;
        worker::run(Arc::clone(&deployer), shared.wakes.clone(), store, Of::Set.resource()).await;
    };
    let expiry = Expiry::new(shared.hub.clone(), context.metrics.clone());
    // It ends by being dropped.
    let _counting = context.metrics.counting(|metrics| metrics.replica_sets.clear());
    tokio::join!(watches::follow(&shared, &deployer, writer), queue, expiry.follow(), expiry.run());
}
