//! Why a Placement has the clusters that it has: for `/debug/placement`.

use parking_lot::RwLock;
use placement::conditions::decided_generation;
use placement::explain;
use serde_json::Value;
use time::OffsetDateTime;

use super::world::World;
use crate::wakes::Key;

/// A run of its own, of which nothing is written. None if there is no such Placement.
pub fn explain(world: &RwLock<World>, key: &Key, now: OffsetDateTime) -> Option<Value> {
    let world = world.read();
    let known = world.placement(key)?;
    if let Some(why) = &known.unreadable {
        return Some(explain::unreadable(&known.prepared, why, decided_generation(&known.status)));
    }
    let snapshot = world.snapshot(known);
    // It goes on meanwhile.
    drop(world);
    Some(snapshot.with_input(now, explain::explain))
}
