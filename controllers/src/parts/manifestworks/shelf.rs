//! Which works are kept in memory. Anyone who may write works in one namespace determines their
//! size, and all parts of this program share its memory. Works beyond the limit are known by their
//! metadata, and read from the hub in their turn.

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

/// Limit of the kept works, in bytes. Memory holds twice as much for the moment in which the hub is
/// listed again, and a standby holds as much: together with everything else, it must fit into 512
/// MiB.
pub const LIMITS: MemoryLimits = MemoryLimits { in_all: 112 << 20, of_one: 16 << 20 };

/// Memory of a map's entry besides its bytes, roughly.
const ENTRY: usize = 64;
/// Bits in the number that replaces the contents: these contain the memory needed, in KiB. The
/// other bits are the mark.
const WEIGHT: u32 = 24;

#[derive(Debug, Clone, Copy)]
pub struct MemoryLimits {
    pub in_all: usize,
    /// Limit of one namespace, which is one cluster's.
    pub of_one: usize,
}

/// Decides which works are kept in full.
pub struct Shelf {
    room: MemoryLimits,
    /// The kept works, and those of an unfinished list.
    books: Mutex<[Books; 2]>,
    metrics: Delivery,
}

#[derive(Debug, Default)]
struct Books {
    of_one: HashMap<String, usize>,
    in_all: usize,
    /// Works of which only the metadata is kept.
    beyond: usize,
}

/// Whether all of a work is kept.
pub fn is_whole(object: &DynamicObject) -> bool {
    !object.data.is_number()
}

/// A number for the metadata that clients may change, and whose changes must be processed.
pub fn mark(object: &DynamicObject) -> u64 {
    if let Some(instead) = object.data.as_u64() {
        return instead >> WEIGHT;
    }
    number(&(object.finalizers(), object.labels())) >> WEIGHT
}

/// Memory needed to process the work, roughly; for a work that is not kept, as the watch brought
/// it.
pub fn weighs(object: &DynamicObject) -> usize {
    let told = object.data.as_u64().map(|instead| instead & ((1 << WEIGHT) - 1));
    told.map_or_else(|| work::weighs(object), |kib| usize::try_from(kib << 10).unwrap_or(usize::MAX))
}

/// The part of a work that is needed before its turn. One number replaces its contents, made from
/// its mark and its weight: nothing can mistake it for a work that wants no objects.
fn beyond(mut object: DynamicObject) -> DynamicObject {
    let weight = u64::try_from(work::weighs(&object).div_ceil(1 << 10)).unwrap_or(u64::MAX);
    object.data = Json::from((mark(&object) << WEIGHT) | weight.min((1 << WEIGHT) - 1));
    (object.metadata.finalizers, object.metadata.labels) = (None, None);
    object
}

/// Removes unused fields. Of the managed fields, it keeps only that our finalizer holds a work that
/// is being deleted.
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

/// Bytes of a kept work; zero for one that is not kept.
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
    pub fn new(room: MemoryLimits, metrics: Delivery) -> Self {
        Self { room, books: Mutex::default(), metrics }
    }

    /// The event in the form to keep. `store` has the earlier objects.
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
    fn put(&mut self, mut object: DynamicObject, before: Option<&DynamicObject>, room: MemoryLimits) -> DynamicObject {
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

    /// Removes a work from the books.
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
