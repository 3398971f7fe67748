//! Chooses clusters for `Placements` in place of Open Cluster Management's scheduler, by its rules.
//!
//! The crate `placement` decides; this module connects it with the hub. It watches everything that
//! a choice depends on ([`World`]), runs the Placements that a change can affect, and writes what
//! differs. While upstream's scheduler runs, this part does nothing.

mod batch;
mod caused;
mod hub_writes;
mod kinds;
mod order;
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

/// Condition in `/readyz`: upstream's scheduler runs.
pub const RIVAL: &str = "placement-rival";
/// Condition in `/readyz`: a kind is not listed yet. The log names the kind.
pub const UNLISTED: &str = "placement-unlisted";
/// The part's name in `--enable` and in metrics.
const NAME: &str = PartName::Placement.as_str();

/// Upstream's scheduler. Its Lease is in the namespace of its installation, which may be any.
const THEIRS: StandIn = StandIn {
    part: PartName::Placement,
    rival: Rival { lease: "placement-lock", deployment: None, place: Place::Any, reason: RIVAL },
    role: "scheduler of Placements",
    begins: "placement schedules Placements",
    may_run_beside: true,
};

/// The part's shared state, with kinds by [`Of::index`].
type Shared = watched::Shared<World, { Of::ALL.len() }>;

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    THEIRS.run(&context, work).await;
}

/// Runs the scheduler. Never ends.
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
        // Until this replica leads, the leader handles every change. The term begins with all
        // Placements.
        tokio::select! {
            () = context.term.begins() => {}
            never = shared.wakes.ignore() => match never {},
        }
        // A run before all kinds are listed and current would miss some of its input.
        watches::listed(&shared, &context.readiness).await;
        watches::catch_up(&shared, &followed).await;
        let all = shared.world.write().take_over(worker::moment());
        for (namespace, name) in &all {
            shared.wakes.push(namespace, name);
        }
        worker::run(Arc::clone(&scheduler), shared.wakes.clone(), store, Of::Placement.resource()).await;
    };
    // Clears the metrics when this future is dropped.
    let _counting = context.metrics.counting(|metrics| metrics.placements.clear());
    tokio::join!(watches::follow(&shared, &scheduler, &followed, writer), queue);
}

/// Explains why a Placement has its clusters, for `/debug/placement`: runs it once and writes
/// nothing. None if there is no such Placement.
fn explained(world: &RwLock<World>, key: &Key, now: OffsetDateTime) -> Option<Value> {
    let world = world.read();
    let known = world.placement(key)?;
    if let Some(why) = &known.unreadable {
        return Some(explain::unreadable(&known.prepared, why, decided_generation(&known.status)));
    }
    let (snapshot, held) = (world.snapshot(known), world.holds(&key.0, now));
    // The run may take long: watches and writes need the world meanwhile.
    drop(world);
    let mut document = snapshot.with_input(now, explain::explain);
    document["removalsHeldUntil"] = held.and_then(|end| end.format(&Rfc3339).ok()).into();
    Some(document)
}
