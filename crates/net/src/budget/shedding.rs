//! Who gives way: those that were not authenticated; then, of whoever holds the most in all, what
//! holds the most.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Budget, Holder, Owner, Part};

/// The holders of one owner.
struct Group<H: Holder> {
    held: u64,
    /// The largest last.
    parts: Vec<(u64, Arc<Part<H>>)>,
}

// === impl Budget ===

impl<H: Holder> Budget<H> {
    /// Tells those that hold the most to give way, until there is some air below the limit:
    /// thousands that hold a little each would otherwise have all of them compared for every frame
    /// that comes.
    #[cold]
    pub(super) fn shed(&self) {
        let Some(_one) = self.0.shedding.try_lock() else { return };
        self.0.shards.iter().for_each(|shard| shard.settle(&self.0.settled));
        if !self.is_exceeded() {
            return;
        }
        let enough = self.0.limit - self.0.limit / 16;
        let (first, others) = self.groups();
        for mut groups in [first, others] {
            let mut order: BinaryHeap<_> =
                groups.iter().enumerate().map(|(at, group)| (group.held, Reverse(at))).collect();
            while self.staying() > enough
                && let Some((_, Reverse(at))) = order.pop()
            {
                let group = &mut groups[at];
                let Some((held, part)) = group.parts.pop() else { continue };
                self.tell(&part, held);
                group.held -= held;
                order.push((group.held, Reverse(at)));
            }
        }
    }

    fn tell(&self, part: &Part<H>, held: u64) {
        // The sum first: what is given back meanwhile is taken from both.
        self.0.leaving.fetch_add(held, Ordering::Relaxed);
        part.leaving.store(held, Ordering::Relaxed);
        part.told.store(true, Ordering::Relaxed);
        self.0.sheds.fetch_add(1, Ordering::Relaxed);
        tracing::debug!(held, owner = ?part.holder.owner(), "gives way: too many bytes are held");
        part.holder.end();
    }

    /// Those that hold something and were not told yet, by owner: the unauthenticated, the others.
    fn groups(&self) -> (Vec<Group<H>>, Vec<Group<H>>) {
        let mut named: HashMap<Owner, Group<H>> = HashMap::new();
        let mut alone = Vec::new();
        for part in self.parts() {
            let held = part.holder.hold().held();
            if held == 0 || part.told.load(Ordering::Relaxed) || !part.holder.may_be_ended() {
                continue;
            }
            match part.holder.owner() {
                Owner::Itself => alone.push(Group { held, parts: vec![(held, part)] }),
                owner => named.entry(owner).or_default().add(held, part),
            }
        }
        let (mut first, mut others): (Vec<_>, Vec<_>) =
            named.into_iter().partition(|(owner, _)| matches!(owner, Owner::Unauthenticated(_)));
        for (_, group) in first.iter_mut().chain(&mut others) {
            group.parts.sort_by_key(|(held, _)| *held);
        }
        let groups = |named: Vec<(Owner, Group<H>)>| named.into_iter().map(|(_, group)| group);
        (groups(first).collect(), groups(others).chain(alone).collect())
    }

    /// Let go of outside of the locks, which the last of each takes.
    fn parts(&self) -> Vec<Arc<Part<H>>> {
        let mut parts = Vec::new();
        for shard in &self.0.shards {
            parts.extend(shard.running.lock().iter().filter_map(|(_, part)| part.upgrade()));
        }
        parts
    }
}

// === impl Group ===

impl<H: Holder> Group<H> {
    fn add(&mut self, held: u64, part: Arc<Part<H>>) {
        self.held += held;
        self.parts.push((held, part));
    }
}

impl<H: Holder> Default for Group<H> {
    fn default() -> Self {
        Self { held: 0, parts: Vec::new() }
    }
}
