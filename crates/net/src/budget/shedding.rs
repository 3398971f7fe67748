//! Decides which holders give way: unauthenticated ones first, then the largest holders of the
//! owner that holds the most in total.
//!
//! Strangers go first only if that makes room. Those that hold almost nothing are mostly callers
//! that are about to authenticate, and would pay for an owner that holds everything. The same
//! applies to strangers' addresses that hold almost nothing beside others that hold much: otherwise
//! an attack from a few addresses would keep out all new callers.
//!
//! A server's bytes weigh four times as much as others'. With equal weight, a server that holds
//! slightly less than the largest user would make others end in its place. If servers always went
//! first, one would end, with all its responses, as soon as an owner that holds nearly everything
//! makes it send a large head.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Budget, Holder, Owner, Part};

/// A stranger's address that holds less than this part of the limit is spared beside others: with
/// 256 MiB, eight connections that have sent nothing yet.
const SMALL: u64 = 1024;

/// The holders of one owner.
struct Group<H: Holder> {
    held: u64,
    weight: u64,
    /// Ordered by size, the largest last.
    parts: Vec<(u64, Arc<Part<H>>)>,
}

/// The holders of one owner, each with its rank.
type Ranked<H> = Vec<(usize, Arc<Part<H>>)>;

// === impl Budget ===

impl<H: Holder> Budget<H> {
    /// Tells the largest holders to give way, until there is some space below the limit: otherwise
    /// thousands with few bytes each would all be compared for every frame that arrives.
    #[cold]
    pub(super) fn shed(&self) {
        let Some(_one) = self.0.shedding.try_lock() else { return };
        self.0.shards.iter().for_each(|shard| shard.settle(&self.0.settled));
        if !self.is_exceeded() {
            return;
        }
        let air = self.0.limit / 16;
        let enough = self.0.limit - air;
        let (first, mut others) = self.groups(air);
        let (mut large, mut small): (Vec<_>, Vec<_>) =
            first.into_iter().partition(|group| group.held >= self.0.limit / SMALL);
        let held = |groups: &[Group<H>]| groups.iter().map(|group| group.held).sum::<u64>();
        if held(&large) + held(&small) < air {
            others.append(&mut large);
        }
        let others_or_first = if held(&small) < air { &mut others } else { &mut large };
        others_or_first.append(&mut small);
        for mut groups in [large, others] {
            let mut order: BinaryHeap<_> =
                groups.iter().enumerate().map(|(at, group)| (group.weighs(), Reverse(at))).collect();
            while self.staying() > enough
                && let Some((_, Reverse(at))) = order.pop()
            {
                let group = &mut groups[at];
                let Some((held, part)) = group.parts.pop() else { continue };
                self.tell(
                    &part,
                    held,
                    &self.0.sheds,
                    "too many bytes held: ending requests or connections of the owner with the most",
                );
                group.held -= held;
                order.push((group.weighs(), Reverse(at)));
            }
        }
    }

    /// Reduces the number of holders. Finds the owner with the most holders on `core` that have a
    /// `rank`, and asks a sixteenth of them to give way, the lowest ranks first. An owner with at
    /// most `few` loses none. Returns how many were asked.
    #[cold]
    pub fn thin_out(&self, core: usize, few: usize, rank: impl Fn(&H) -> Option<usize>) -> usize {
        let mut owners: HashMap<Owner, Ranked<H>> = HashMap::new();
        for part in self.parts_of(core) {
            if !part.told.load(Ordering::Relaxed)
                && part.holder.may_be_ended()
                && let Some(rank) = rank(&part.holder)
            {
                owners.entry(part.holder.owner()).or_default().push((rank, part));
            }
        }
        let most = owners.into_values().max_by_key(Vec::len);
        let Some(mut parts) = most.filter(|parts| parts.len() > few) else { return 0 };
        parts.sort_by_key(|(rank, _)| *rank);
        let told = parts.len().div_ceil(16);
        for (_, part) in &parts[..told] {
            self.tell(
                part,
                part.holder.counters().held(),
                &self.0.thinned,
                "too many connections: closing some of the owner with the most",
            );
        }
        told
    }

    fn tell(&self, part: &Part<H>, held: u64, counted: &AtomicU64, why: &'static str) {
        // The sum first, because bytes given back meanwhile are subtracted from both.
        self.0.leaving.fetch_add(held, Ordering::Relaxed);
        part.leaving.store(held, Ordering::Relaxed);
        part.told.store(true, Ordering::Relaxed);
        counted.fetch_add(1, Ordering::Relaxed);
        if let Some(suppressed) = self.0.log.due() {
            tracing::warn!(held, limit = self.0.limit, owner = ?part.holder.owner(), suppressed, "{why}");
        }
        part.holder.end();
    }

    /// The holders with bytes that were not asked yet, by owner: the unauthenticated, and the
    /// others. An unauthenticated owner from an address that is known otherwise counts among the
    /// others, as long as it holds less than `little`.
    fn groups(&self, little: u64) -> (Vec<Group<H>>, Vec<Group<H>>) {
        let mut named: HashMap<Owner, Group<H>> = HashMap::new();
        let (mut alone, mut known) = (Vec::new(), HashSet::new());
        for part in self.parts() {
            let held = part.holder.counters().held();
            if held == 0 || part.told.load(Ordering::Relaxed) {
                continue;
            }
            let owner = part.holder.owner();
            if !part.holder.may_be_ended() {
                if let Owner::Address(address) = owner {
                    known.insert(address);
                }
                continue;
            }
            match owner {
                Owner::Itself => alone.push(Group { held, weight: 1, parts: vec![(held, part)] }),
                owner => {
                    let weight = owner.weight();
                    named.entry(owner).or_insert_with(|| Group::new(weight)).add(held, part);
                }
            }
        }
        let is_stranger = |(owner, group): &(Owner, Group<H>)| matches!(owner, Owner::Unauthenticated(address) if group.held >= little || !known.contains(address));
        let (mut first, mut others): (Vec<_>, Vec<_>) = named.into_iter().partition(is_stranger);
        for (_, group) in first.iter_mut().chain(&mut others) {
            group.parts.sort_by_key(|(held, _)| *held);
        }
        let groups = |named: Vec<(Owner, Group<H>)>| named.into_iter().map(|(_, group)| group);
        (groups(first).collect(), groups(others).chain(alone).collect())
    }

    fn parts(&self) -> Vec<Arc<Part<H>>> {
        (0..self.0.shards.len()).flat_map(|core| self.parts_of(core)).collect()
    }

    /// The references are dropped outside the lock, because the last one takes it.
    fn parts_of(&self, core: usize) -> Vec<Arc<Part<H>>> {
        let shard = &self.0.shards[core % self.0.shards.len()];
        shard.running.lock().iter().filter_map(|(_, part)| part.upgrade()).collect()
    }
}

// === impl Group ===

impl<H: Holder> Group<H> {
    fn new(weight: u64) -> Self {
        Self { held: 0, weight, parts: Vec::new() }
    }

    fn weighs(&self) -> u64 {
        self.held.saturating_mul(self.weight)
    }

    fn add(&mut self, held: u64, part: Arc<Part<H>>) {
        self.held += held;
        self.parts.push((held, part));
    }
}
