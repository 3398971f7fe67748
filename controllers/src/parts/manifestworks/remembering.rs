//! The memory for objects: which objects a work has, the version at which each was last processed,
//! and failures. The author of a work determines how many there are.

use std::collections::HashSet;

use delivery::identity::Tracked;
use delivery::manifests::Manifest;

use super::memory::Memory;
use super::pass::Pass;
use super::target::REMEMBERED;
use crate::events::Reason;

/// Memory in bytes of an object besides its names, while it is owed and has failed; and of a kind
/// in a namespace.
pub const OBJECT: usize = 640;
const SCOPE: usize = 320;

/// Group, version, resource, namespace, name.
type Names<'n> = [&'n str; 5];

// === impl Pass ===

impl Pass<'_> {
    /// Reserves memory for the state of these manifests' objects. Without room they are not
    /// watched. Returns whether there is room.
    pub(super) fn make_room(&self, memory: &mut Memory, manifests: &[Manifest]) -> bool {
        // A pass over some objects learns nothing about the others, which nothing would process
        // then.
        if memory.is_unwatched() && !self.is_whole {
            return false;
        }
        let (target, was_unwatched) = (self.target, memory.is_unwatched());
        let bytes = weighs(manifests.iter().map(of_manifest));
        let has_room = memory.make_room(bytes, &target.remembered, &self.part.metrics.delivery);
        if has_room || !was_unwatched {
            target.sights.watch(self.work.name(), has_room);
        }
        if !has_room && target.mark_unwatched() {
            self.part.tell(self.work, Reason::WorkNotWatched, self.not_watched());
        }
        has_room
    }

    /// The objects that are not gone yet whose state fits in memory besides the others: all, or
    /// none.
    pub(super) fn remembered<'w>(
        memory: &mut Memory,
        manifests: &[Manifest],
        waiting: &'w [(Tracked, Option<String>)],
    ) -> &'w [(Tracked, Option<String>)] {
        // The memory for the manifests is already reserved.
        if waiting.is_empty() {
            return waiting;
        }
        let names = manifests.iter().map(of_manifest).chain(waiting.iter().map(|(one, _)| of_tracked(one)));
        if memory.grow(weighs(names)) { waiting } else { &[] }
    }

    /// The text of the Event for a cluster's first such work.
    fn not_watched(&self) -> String {
        format!(
            "the controllers do not watch the objects of this work: what they remember of the objects of {} takes more \
             than {} MiB, or that of all clusters more than {} MiB. They read the objects of this work, and perhaps of \
             others, every {} s instead. Create fewer works, or works with fewer manifests",
            self.work.cluster(),
            REMEMBERED.of_one >> 20,
            REMEMBERED.in_all >> 20,
            self.part.resync.as_secs()
        )
    }
}

fn of_manifest(manifest: &Manifest) -> Names<'_> {
    [&manifest.group, &manifest.version, &manifest.resource, &manifest.namespace, &manifest.name]
}

fn of_tracked(tracked: &Tracked) -> Names<'_> {
    let identity = &tracked.identity;
    [&identity.group, &tracked.version, &identity.resource, &identity.namespace, &identity.name]
}

/// Memory in bytes, roughly.
fn weighs<'n>(all: impl Iterator<Item = Names<'n>>) -> usize {
    let mut scopes = HashSet::new();
    let each = all.map(|names| {
        let [scope @ .., name] = names;
        let texts = scope.iter().map(|text| text.len()).sum::<usize>();
        let of_scope = if scopes.insert(scope) { SCOPE + texts } else { 0 };
        OBJECT + texts + name.len() + of_scope
    });
    each.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_one_kind_in_one_namespace_are_watched_together() {
        let name = |namespace: &'static str| ["g", "v", "r", namespace, "name"];
        assert_eq!(weighs([name("n"), name("n")].into_iter()), 2 * (OBJECT + 8) + SCOPE + 4);
        assert_eq!(weighs([name("n"), name("m")].into_iter()), 2 * (OBJECT + 8 + SCOPE + 4));
    }
}
