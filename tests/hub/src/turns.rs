//! Schedules tests: only so many run at a time, and only one of those that work on the same
//! objects. A test that waits for such a turn takes no place meanwhile: when several threads waited
//! for one test, a run took as long as with a single thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::time::Instant;

/// The name of something that two tests may not work on at the same time.
type Name = &'static str;

/// Places for tests.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: usize,
    held: BTreeSet<Name>,
    waiting: BTreeMap<Ticket, Vec<Name>>,
}

/// The order of waiting tests: first those that have begun, then by their number on the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ticket {
    is_new: bool,
    number: usize,
}

/// A running test, until it is dropped. It belongs to its thread.
pub(crate) struct Turn(());

/// Holds names until it is dropped: no other test of this binary holds any of them meanwhile.
#[derive(Debug)]
pub struct Alone {
    turns: Arc<Turns>,
    names: Vec<Name>,
}

/// The running test of a thread.
struct Current {
    turns: Arc<Turns>,
    number: usize,
    waited: Duration,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Waits until no other test of this binary holds any of `names`, and takes all of them together: a
/// test that holds some waits for no others.
///
/// # Panics
///
/// Outside of a test of a [`crate::fixture::Fixture`].
pub fn alone(names: &[Name]) -> Alone {
    CURRENT.with_borrow_mut(|current| {
        let Current { turns, number, waited } = current.as_mut().expect("a test");
        let begin = Instant::now();
        turns.pause(*number, names);
        *waited += begin.elapsed();
        Alone { turns: Arc::clone(turns), names: names.to_vec() }
    })
}

/// How long this thread's test has waited for others during its run.
pub(crate) fn waited() -> Duration {
    CURRENT.with_borrow(|current| current.as_ref().map_or(Duration::ZERO, |current| current.waited))
}

// === impl Turns ===

impl Turns {
    /// Sets how many tests run at a time; before that, none do.
    pub fn open(&self, places: usize) {
        self.state.lock().free = places;
        self.changed.notify_all();
    }

    /// Waits for a place for the test with that number.
    pub fn begin(self: &Arc<Self>, number: usize) -> Turn {
        self.wait(self.state.lock(), Ticket { is_new: true, number }, &[]);
        CURRENT.set(Some(Current { turns: Arc::clone(self), number, waited: Duration::ZERO }));
        Turn(())
    }

    fn pause(&self, number: usize, names: &[Name]) {
        let mut state = self.state.lock();
        state.free += 1;
        self.changed.notify_all();
        self.wait(state, Ticket { is_new: false, number }, names);
    }

    fn wait(&self, mut state: MutexGuard<'_, State>, ticket: Ticket, names: &[Name]) {
        state.waiting.insert(ticket, names.to_vec());
        while !state.is_next(ticket) {
            self.changed.wait(&mut state);
        }
        state.waiting.remove(&ticket);
        state.free -= 1;
        state.held.extend(names);
        // There may be a place for another test, too.
        self.changed.notify_all();
    }

    fn end(&self) {
        self.state.lock().free += 1;
        self.changed.notify_all();
    }
}

// === impl State ===

impl State {
    /// Whether all that it needs is free, and not needed by a test that comes before it.
    fn is_next(&self, ticket: Ticket) -> bool {
        let (mut free, mut taken) = (self.free, self.held.clone());
        for (other, names) in &self.waiting {
            let may_go = free > 0 && names.iter().all(|name| !taken.contains(name));
            if *other == ticket {
                return may_go;
            }
            free -= usize::from(may_go);
            taken.extend(names);
        }
        false
    }
}

// === impl Turn ===

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(current) = CURRENT.take() {
            current.turns.end();
        }
    }
}

// === impl Alone ===

impl Drop for Alone {
    fn drop(&mut self) {
        let mut state = self.turns.state.lock();
        state.held.retain(|name| !self.names.contains(name));
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Name = "a";
    const B: Name = "b";

    fn ticket(number: usize) -> Ticket {
        Ticket { is_new: number >= 10, number }
    }

    fn state(free: usize, held: &[Name], waiting: &[(usize, &[Name])]) -> State {
        let waiting = waiting.iter().map(|(number, names)| (ticket(*number), names.to_vec())).collect();
        State { free, held: held.iter().copied().collect(), waiting }
    }

    fn next(state: &State) -> Vec<usize> {
        state.waiting.keys().filter(|ticket| state.is_next(**ticket)).map(|ticket| ticket.number).collect()
    }

    #[test]
    fn who_waits_for_a_test_takes_no_place() {
        let waiting: [(usize, &[Name]); 4] = [(1, &[A]), (2, &[A]), (3, &[B]), (10, &[])];
        assert_eq!(next(&state(3, &[], &waiting)), [1, 3, 10]);
        assert_eq!(next(&state(2, &[A], &waiting)), [3, 10]);
        assert_eq!(next(&state(1, &[A], &waiting)), [3], "who has begun comes first");
        assert_eq!(next(&state(0, &[], &waiting)), [0; 0]);
    }

    #[test]
    fn who_needs_two_is_not_passed_for_ever() {
        let waiting: [(usize, &[Name]); 3] = [(1, &[A, B]), (2, &[B]), (3, &[A])];
        assert_eq!(next(&state(5, &[A], &waiting)), [0; 0], "what comes later would take the other one");
        assert_eq!(next(&state(5, &[], &waiting)), [1]);
    }

    #[test]
    fn one_after_the_other_with_one_place() {
        let (turns, order) = (Arc::new(Turns::default()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (turns, order) = (&turns, &order);
                scope.spawn(move || {
                    let turn = turns.begin(number);
                    let alone = alone(&[A, B]);
                    order.lock().push(("begins", number));
                    assert!(waited() < Duration::from_mins(1));
                    order.lock().push(("ends", number));
                    drop((alone, turn));
                });
            }
            turns.open(1);
        });
        let order = order.into_inner();
        assert_eq!(order.len(), 6);
        assert!(order.chunks(2).all(|pair| pair[0].1 == pair[1].1 && pair[0].0 == "begins"), "{order:?}");
        let state = turns.state.lock();
        assert_eq!((state.free, state.held.len(), state.waiting.len()), (1, 0, 0));
    }
}
