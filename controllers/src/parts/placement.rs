//! Chooses clusters for `Placements` as Open Cluster Management's scheduler does, standing in for
//! it.
//!
//! Which clusters is decided in the crate `placement`; here it meets the hub. What a choice depends
//! on is watched ([`World`]), a change leads to a run of the Placements that can see it, and what
//! differs then is written. While upstream's scheduler runs, none of this does.

mod batch;
mod hub_writes;
mod kinds;
mod order;
mod pace;
mod plan;
mod scheduler;
mod slots;
mod status;
mod watches;
mod world;

use std::sync::Arc;

use kube::runtime::reflector::store::Writer;
use parking_lot::RwLock;
use placement::conditions::decided_generation;
use placement::explain;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::sync::Semaphore;

use self::kinds::Of;
use self::scheduler::{Scheduler, WRITES};
use self::slots::Lanes;
use self::world::World;
use super::rivals::{Place, Rival};
use super::stand_in::StandIn;
use super::{Context, watched, worker};
use crate::args::PartName;
use crate::wakes::Key;

/// In `/readyz`: upstream's scheduler runs.
pub const RIVAL: &str = "placement-rival";
/// In `/readyz`: a kind was not listed yet. The log has which.
pub const UNLISTED: &str = "placement-unlisted";
/// As `--enable` and metrics name it.
const NAME: &str = PartName::Placement.as_str();

/// Upstream's scheduler. An installation may have any namespace, and its Lease is there.
const THEIRS: StandIn = StandIn {
    part: PartName::Placement,
    rival: Rival { lease: "placement-lock", place: Place::Any, reason: RIVAL },
    role: "scheduler of Placements",
    begins: "placement schedules Placements",
    may_run_beside: true,
};

/// Kinds by [`Of::index`].
type Shared = watched::Shared<World, { Of::ALL.len() }>;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    THEIRS.run(&context, work).await;
}

/// Everything that schedules. Never ends.
async fn work(context: Context<'_>) {
    let shared = Shared::new(&context, World::limited(context.config.source_removal_limit));
    let writer = Writer::new(Of::Placement.resource());
    let store = writer.as_reader();
    let scheduler = Arc::new(Scheduler {
        hub: shared.hub.clone(),
        world: Arc::clone(&shared.world),
        events: context.events.clone(),
        metrics: context.metrics.clone(),
        tries: worker::Tries::default(),
        lanes: Lanes::new(&shared.wakes),
        writes: Semaphore::new(WRITES),
    });
    let known = Arc::clone(&shared.world);
    let _answering = context
        .explained
        .by(move |namespace, name| explained(&known, &(namespace.to_owned(), name.to_owned()), worker::moment()));
    let followed = watches::AllFollowed::default();
    let queue = async {
        // Whoever leads meanwhile looks at what changes; all of it is looked at when it ends.
        tokio::select! {
            () = context.term.begins() => {}
            never = shared.wakes.ignore() => match never {},
        }
        // Without them, what is there would be judged by half of what it depends on.
        watches::listed(&shared, &context.readiness).await;
        watches::catch_up(&shared, &followed).await;
        let all = shared.world.write().take_over(worker::moment());
        for (namespace, name) in &all {
            shared.wakes.push(namespace, name);
        }
        worker::run(Arc::clone(&scheduler), shared.wakes.clone(), store, Of::Placement.resource()).await;
    };
    // It ends by being dropped.
    let _counting = context.metrics.counting(|metrics| metrics.placements.clear());
    tokio::join!(watches::follow(&shared, &scheduler, &followed, writer), queue);
}

/// Why a Placement has the clusters that it has, for `/debug/placement`: a run of its own, of which
/// nothing is written. None if there is no such Placement.
fn explained(world: &RwLock<World>, key: &Key, now: OffsetDateTime) -> Option<Value> {
    let world = world.read();
    let known = world.placement(key)?;
    if let Some(why) = &known.unreadable {
        return Some(explain::unreadable(&known.prepared, why, decided_generation(&known.status)));
    }
    let (snapshot, held) = (world.snapshot(known), world.holds(&key.0, now));
    // It goes on meanwhile.
    drop(world);
    let mut document = snapshot.with_input(now, explain::explain);
    document["removalsHeldUntil"] = held.and_then(|end| end.format(&Rfc3339).ok()).into();
    Some(document)
}
