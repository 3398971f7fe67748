//! Slots for costly runs: one run at a time. Namespaces alternate, and within a namespace requests
//! are first come, first served. So a namespace with many Placements delays each run of another
//! namespace by one run at most.
//!
//! Nothing blocks here: a Placement that gets no slot runs later, and its worker is free for
//! others.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::wakes::{Key, Wakes};

/// How long a slot stays reserved for the next Placement, which may be gone or no longer need it.
const TO_BEGIN: Duration = Duration::from_secs(1);
/// Longest wait before the next try. A Placement is woken as soon as the slot is reserved for it.
pub const AT_THE_LATEST: Duration = Duration::from_secs(10);

/// One slot for runs that took few steps the last time, and one for all others. A quick run never
/// waits for a run that takes long, or may take long.
pub struct Lanes {
    quick: Arc<Slots>,
    costly: Arc<Slots>,
}

pub struct Slots {
    wakes: Wakes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_taken: bool,
    waiting: WaitingPlacements,
    /// The Placement that the free slot is reserved for, and the end of the reservation.
    reserved: Option<(Instant, Key)>,
}

/// Placements that wait, each once.
#[derive(Default)]
struct WaitingPlacements {
    /// In the order of their grants.
    namespaces: VecDeque<String>,
    /// By namespace, in the order of their grants; no queue is empty.
    names: HashMap<String, VecDeque<String>>,
}

/// The permit of one run, released when dropped.
pub struct RunPermit(Arc<Slots>);

// === impl Lanes ===

impl Lanes {
    pub fn new(wakes: &Wakes) -> Self {
        Self { quick: Slots::new(wakes.clone()), costly: Slots::new(wakes.clone()) }
    }

    /// None if another Placement has the slot or the reservation: then this one waits and is woken
    /// later.
    pub fn take(&self, key: &Key, is_quick: bool) -> Option<RunPermit> {
        let (own, other) = if is_quick { (&self.quick, &self.costly) } else { (&self.costly, &self.quick) };
        other.forget(key);
        own.take(key)
    }

    /// Forgets a Placement that is gone.
    pub fn forget(&self, key: &Key) {
        self.quick.forget(key);
        self.costly.forget(key);
    }
}

// === impl Slots ===

impl Slots {
    fn new(wakes: Wakes) -> Arc<Self> {
        Arc::new(Self { wakes, state: Mutex::default() })
    }

    fn take(self: &Arc<Self>, key: &Key) -> Option<RunPermit> {
        let mut state = self.state.lock();
        if let Some((_, late)) = state.reserved.take_if(|(end, _)| *end <= Instant::now()) {
            state.waiting.had_its_turn(&late);
        }
        let is_next = state.waiting.first().as_ref() == Some(key);
        if state.is_taken || !(is_next || state.reserved.is_none()) {
            state.waiting.push(key);
            return None;
        }
        state.waiting.had_its_turn(key);
        (state.is_taken, state.reserved) = (true, None);
        Some(RunPermit(Arc::clone(self)))
    }

    fn forget(&self, key: &Key) {
        let mut state = self.state.lock();
        state.waiting.remove(key);
        // Otherwise those behind it would wait for a Placement that never comes.
        if state.reserved.take_if(|(_, kept)| kept == key).is_some() {
            self.keep_for_first(&mut state);
        }
    }

    fn keep_for_first(&self, state: &mut State) {
        if let Some(first) = state.waiting.first() {
            self.wakes.push(&first.0, &first.1);
            state.reserved = Some((Instant::now() + TO_BEGIN, first));
        }
    }
}

impl Drop for RunPermit {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_taken = false;
        self.0.keep_for_first(&mut state);
    }
}

// === impl WaitingPlacements ===

impl WaitingPlacements {
    fn first(&self) -> Option<Key> {
        let namespace = self.namespaces.front()?;
        Some((namespace.clone(), self.names.get(namespace)?.front()?.clone()))
    }

    fn push(&mut self, (namespace, name): &Key) {
        let names = self.names.entry(namespace.clone()).or_default();
        if names.is_empty() {
            self.namespaces.push_back(namespace.clone());
        }
        if !names.contains(name) {
            names.push_back(name.clone());
        }
    }

    /// Removes a waiting key. Others of its namespace then wait behind all other namespaces.
    fn had_its_turn(&mut self, key: &Key) {
        self.remove(key);
        if self.names.contains_key(&key.0) {
            self.namespaces.retain(|namespace| *namespace != key.0);
            self.namespaces.push_back(key.0.clone());
        }
    }

    fn remove(&mut self, (namespace, name): &Key) {
        let Some(names) = self.names.get_mut(namespace) else { return };
        names.retain(|waiting| waiting != name);
        if names.is_empty() {
            self.names.remove(namespace);
            self.namespaces.retain(|waiting| waiting != namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        of("n", name)
    }

    fn of(namespace: &str, name: &str) -> Key {
        (namespace.to_owned(), name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_in_the_order_of_asking() {
        let wakes = Wakes::default();
        let slots = Slots::new(wakes.clone());
        let slot = slots.take(&key("a"));
        assert!(slot.is_some() && slots.take(&key("b")).is_none() && slots.take(&key("c")).is_none());
        drop(slot);
        assert_eq!(wakes.next().await, key("b"));
        assert!(slots.take(&key("a")).is_none(), "who had it waits for all others");
        let slot = slots.take(&key("b"));
        assert!(slot.is_some());
        drop(slot);
        assert_eq!(wakes.next().await, key("c"));
        slots.forget(&key("c"));
        tokio::time::advance(TO_BEGIN).await;
        assert!(slots.take(&key("z")).is_some(), "nobody waits for one that does not come");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_leaves_when_its_turn_comes_holds_nobody_up_and_takes_no_place() {
        let wakes = Wakes::default();
        let slots = Slots::new(wakes.clone());
        let slot = slots.take(&key("a"));
        for name in ["b", "c", "d"] {
            assert!(slots.take(&key(name)).is_none());
        }
        drop(slot);
        assert_eq!(wakes.next().await, key("b"));
        slots.forget(&key("b"));
        assert_eq!(wakes.next().await, key("c"), "the next one is woken at once");
        tokio::time::advance(TO_BEGIN).await;
        assert!(slots.take(&key("z")).is_some(), "it did not come");
        assert_eq!(slots.state.lock().waiting.first(), Some(key("d")), "c alone lost its place");
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_take_turns_however_many_wait_in_one() {
        let wakes = Wakes::default();
        let slots = Slots::new(wakes.clone());
        let mut slot = slots.take(&of("many", "0"));
        for number in 1..100 {
            assert!(slots.take(&of("many", &number.to_string())).is_none());
        }
        assert!(slots.take(&of("one", "a")).is_none() && slots.take(&of("one", "b")).is_none());
        assert!(slots.take(&of("other", "c")).is_none());
        let mut had = Vec::new();
        for _ in 0..7 {
            drop(slot.take());
            let next = wakes.next().await;
            slot = slots.take(&next);
            assert!(slot.is_some());
            had.push(format!("{}/{}", next.0, next.1));
        }
        assert_eq!(had, ["many/1", "one/a", "other/c", "many/2", "one/b", "many/3", "many/4"]);
    }

    #[test]
    fn what_takes_little_does_not_wait_for_what_takes_long() {
        let lanes = Lanes::new(&Wakes::default());
        let long = lanes.take(&key("long"), false);
        assert!(long.is_some() && lanes.take(&key("a"), false).is_none());
        let quick = lanes.take(&key("a"), true);
        assert!(quick.is_some() && lanes.take(&key("b"), true).is_none(), "one of these at a time as well");
        drop(long);
        assert!(lanes.take(&key("c"), false).is_some(), "it waits in one line only");
    }
}
