//! How much of works is kept in memory. Whoever may write works in one namespace chooses how much
//! there is of them, and all parts of this program share its memory: what is beyond is known by its
//! metadata, and read from the hub when its turn comes.

use std::collections::HashMap;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::core::ObjectMeta;
use kube::runtime::reflector::Store;
use kube::runtime::watcher::Event;
use parking_lot::Mutex;
use serde_json::Value as Json;

use super::work::{self, find, holding, is_held_by_us, key};
use crate::metrics::Delivery;
use crate::parts::watched::number;

/// Bytes of works that are kept. Twice as much is there for the moment in which the hub is listed
/// again, and a standby has as much: together with all else, it has to fit into 512 MiB.
pub const ROOM: Room = Room { in_all: 112 << 20, of_one: 16 << 20 };

/// That an entry of a map takes beside its bytes, roughly.
const ENTRY: usize = 64;
/// Bits of what stands in the place of contents that say how much memory they take, in KiB. The
/// others are the mark.
const WEIGHT: u32 = 24;

#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub in_all: usize,
    /// Of one namespace, which is one cluster's.
    pub of_one: usize,
}

/// Decides which works are kept whole.
pub struct Shelf {
    room: Room,
    /// What is kept, and what is kept of a list that has not come to its end.
    books: Mutex<[Books; 2]>,
    metrics: Delivery,
}

#[derive(Debug, Default)]
struct Books {
    of_one: HashMap<String, usize>,
    in_all: usize,
    /// Works of which only metadata is kept.
    beyond: usize,
}

/// Whether all of a work is kept.
pub fn is_whole(object: &DynamicObject) -> bool {
    !object.data.is_number()
}

/// A number for what of the metadata somebody may change, and which is to be looked at then.
pub fn mark(object: &DynamicObject) -> u64 {
    if let Some(instead) = object.data.as_u64() {
        return instead >> WEIGHT;
    }
    number(&(object.finalizers(), object.labels())) >> WEIGHT
}

/// How much memory working on it takes, roughly; if it is not kept, as the watch told it.
pub fn weighs(object: &DynamicObject) -> usize {
    let told = object.data.as_u64().map(|instead| instead & ((1 << WEIGHT) - 1));
    told.map_or_else(|| work::weighs(object), |kib| usize::try_from(kib << 10).unwrap_or(usize::MAX))
}

/// What is looked at of a work before its turn. In the place of its contents are its mark and its
/// weight, as one number, which nobody can read as a work that wants nothing.
fn beyond(mut object: DynamicObject) -> DynamicObject {
    let weight = u64::try_from(work::weighs(&object).div_ceil(1 << 10)).unwrap_or(u64::MAX);
    object.data = Json::from((mark(&object) << WEIGHT) | weight.min((1 << WEIGHT) - 1));
    (object.metadata.finalizers, object.metadata.labels) = (None, None);
    object
}

/// Leaves out what nobody looks at. Of the managed fields: that of one which ends, we hold it.
fn prune(object: &mut DynamicObject) {
    let is_ours = object.metadata.deletion_timestamp.is_some() && is_held_by_us(object);
    let all = std::mem::take(&mut object.metadata);
    object.metadata = ObjectMeta {
        name: all.name,
        namespace: all.namespace,
        uid: all.uid,
        resource_version: all.resource_version,
        generation: all.generation,
        deletion_timestamp: all.deletion_timestamp,
        finalizers: all.finalizers,
        labels: all.labels,
        managed_fields: is_ours.then(|| vec![holding()]),
        ..ObjectMeta::default()
    };
}

/// Bytes that one takes; of one that is not kept, none.
fn size(object: &DynamicObject) -> usize {
    if !is_whole(object) {
        return 0;
    }
    let text = object.data.as_str().map_or(0, str::len);
    let labels = object.labels().iter().map(|(key, value)| key.len() + value.len() + ENTRY);
    let finalizers = object.finalizers().iter().map(|one| one.len() + ENTRY);
    text + labels.chain(finalizers).sum::<usize>()
}

// === impl Shelf ===

impl Shelf {
    pub fn new(room: Room, metrics: Delivery) -> Self {
        Self { room, books: Mutex::default(), metrics }
    }

    /// The event as it is kept. `store` has what was kept before.
    pub fn keep(&self, event: Event<DynamicObject>, store: &Store<DynamicObject>) -> Event<DynamicObject> {
        let mut books = self.books.lock();
        let [now, listed] = &mut *books;
        let before = |object: &DynamicObject| find(store, &key(object));
        let event = match event {
            Event::Init => {
                *listed = Books::default();
                Event::Init
            }
            Event::InitApply(object) => Event::InitApply(listed.put(object, None, self.room)),
            Event::InitDone => {
                *now = std::mem::take(listed);
                Event::InitDone
            }
            Event::Apply(object) => {
                let old = before(&object);
                Event::Apply(now.put(object, old.as_deref(), self.room))
            }
            Event::Delete(mut object) => {
                now.take(before(&object).as_deref());
                prune(&mut object);
                Event::Delete(object)
            }
        };
        self.metrics.keeps(now.in_all, now.beyond);
        event
    }
}

// === impl Books ===

impl Books {
    fn put(&mut self, mut object: DynamicObject, before: Option<&DynamicObject>, room: Room) -> DynamicObject {
        self.take(before);
        prune(&mut object);
        let size = size(&object);
        let own = self.of_one.get(object.metadata.namespace.as_deref().unwrap_or_default()).copied();
        let fits = self.in_all + size <= room.in_all && own.unwrap_or_default() + size <= room.of_one;
        if !fits {
            self.beyond += 1;
            return beyond(object);
        }
        *self.of_one.entry(object.namespace().unwrap_or_default()).or_default() += size;
        self.in_all += size;
        object
    }

    /// It is kept no more.
    fn take(&mut self, before: Option<&DynamicObject>) {
        let Some(before) = before else { return };
        if !is_whole(before) {
            self.beyond = self.beyond.saturating_sub(1);
            return;
        }
        let (size, namespace) = (size(before), before.namespace().unwrap_or_default());
        self.in_all = self.in_all.saturating_sub(size);
        if let Some(own) = self.of_one.get_mut(&namespace) {
            *own = own.saturating_sub(size);
            if *own == 0 {
                self.of_one.remove(&namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests;
