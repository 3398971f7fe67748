//! Why a Placement has the clusters that it has: for `/debug/placement`.

use parking_lot::RwLock;
use placement::conditions::decided_generation;
use placement::explain;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::world::World;
use crate::wakes::Key;

/// A run of its own, of which nothing is written. None if there is no such Placement.
pub fn explain(world: &RwLock<World>, key: &Key, now: OffsetDateTime) -> Option<Value> {
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
