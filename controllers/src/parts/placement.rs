//! Chooses clusters for `Placements` as Open Cluster Management's scheduler does, standing in for
//! it.
//!
//! Which clusters is decided in the crate `placement`; here it meets the hub. What a choice depends
//! on is watched ([`World`]), a change leads to a run of the Placements that can see it, and what
//! differs then is written. While upstream's scheduler runs, none of this does.

mod batch;
mod explain;
mod hub_writes;
mod kinds;
mod order;
mod plan;
mod scheduler;
mod status;
mod turns;
mod watches;
mod world;

use std::sync::Arc;

use kube::runtime::reflector::store::Writer;

use self::kinds::Of;
use self::scheduler::Scheduler;
use self::turns::Turns;
use self::world::World;
use super::rivals::Rival;
use super::stand_in::StandIn;
use super::{Context, watched, worker};
use crate::args::PartName;

/// In `/readyz`: upstream's scheduler runs.
pub const RIVAL: &str = "placement-rival";
/// In `/readyz`: a kind was not listed yet. The log has which.
pub const UNLISTED: &str = "placement-unlisted";
/// As `--enable` and metrics name it.
const NAME: &str = PartName::Placement.as_str();

/// Upstream's scheduler. An installation may have any namespace, and its Lease is there.
const THEIRS: StandIn = StandIn {
    part: PartName::Placement,
    rival: Rival { lease: "placement-lock", may_be_theirs: |_| true, reason: RIVAL },
    role: "scheduler of Placements",
    begins: "placement schedules Placements",
    may_run_beside: true,
};

/// Kinds by [`Of::index`].
type Shared = watched::Shared<World, { Of::ALL.len() }>;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    THEIRS.run(&context, || work(&context)).await;
}

/// Everything that schedules. Never ends.
async fn work(context: &Context<'_>) {
    let shared = Shared::new(context, World::limited(context.config.source_removal_limit));
    let writer = Writer::new(Of::Placement.resource());
    let store = writer.as_reader();
    let scheduler = Arc::new(Scheduler {
        hub: shared.hub.clone(),
        world: Arc::clone(&shared.world),
        events: context.events.clone(),
        metrics: context.metrics.clone(),
        tries: worker::Tries::default(),
        costly: Turns::new(shared.wakes.clone()),
    });
    let known = Arc::clone(&shared.world);
    let _answering = context.explained.by(move |namespace, name| {
        explain::explain(&known, &(namespace.to_owned(), name.to_owned()), worker::moment())
    });
    let queue = async {
        // Whoever leads meanwhile looks at what changes; all of it is looked at when it ends.
        tokio::select! {
            () = context.term.begins() => {}
            never = shared.wakes.ignore() => match never {},
        }
        // Without them, what is there would be judged by half of what it depends on.
        watches::listed(&shared, &context.readiness).await;
        let all = shared.world.write().take_over(worker::moment());
        all.iter().for_each(|(namespace, name)| shared.wakes.push(namespace, name));
        worker::run(Arc::clone(&scheduler), shared.wakes.clone(), store, Of::Placement.resource()).await;
    };
    // It ends by being dropped.
    let _counting = context.metrics.counting(|metrics| metrics.placements.clear());
    tokio::join!(watches::follow(&shared, &scheduler, writer), queue);
}
