//! Whose turn it is to run something costly: one at a time, in the order in which they asked.
//!
//! Nobody waits in here: what is not its turn is looked at later, and what others need meanwhile is
//! free for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::wakes::{Key, Wakes};

/// For whoever's turn it is, to begin: it may be gone, or not need it any more.
const TO_BEGIN: Duration = Duration::from_secs(1);
/// When to look again at the latest: whose turn it is is woken.
pub const AT_THE_LATEST: Duration = Duration::from_secs(10);

pub struct Turns {
    wakes: Wakes,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_taken: bool,
    /// Each once. The first is next.
    waiting: VecDeque<Key>,
    /// Until then nobody else may begin than the first.
    reserved: Option<Instant>,
}

/// Ends when it is dropped.
pub struct Turn(Arc<Turns>);

// === impl Turns ===

impl Turns {
    pub fn new(wakes: Wakes) -> Arc<Self> {
        Arc::new(Self { wakes, state: Mutex::default() })
    }

    /// None if it is another's turn: then it waits, and is woken.
    pub fn take(self: &Arc<Self>, key: &Key) -> Option<Turn> {
        let mut state = self.state.lock();
        if !state.is_taken && state.reserved.is_some_and(|end| end <= Instant::now()) {
            state.waiting.pop_front();
            state.reserved = None;
        }
        let is_next = state.waiting.front() == Some(key);
        if state.is_taken || !(is_next || state.reserved.is_none()) {
            if !state.waiting.contains(key) {
                state.waiting.push_back(key.clone());
            }
            return None;
        }
        state.waiting.retain(|waiting| waiting != key);
        (state.is_taken, state.reserved) = (true, None);
        Some(Turn(Arc::clone(self)))
    }

    /// It is gone.
    pub fn forget(&self, key: &Key) {
        self.state.lock().waiting.retain(|waiting| waiting != key);
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_taken = false;
        if let Some((namespace, name)) = state.waiting.front() {
            self.0.wakes.push(namespace, name);
            state.reserved = Some(Instant::now() + TO_BEGIN);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        ("n".to_owned(), name.to_owned())
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_in_the_order_of_asking() {
        let wakes = Wakes::default();
        let turns = Turns::new(wakes.clone());
        let turn = turns.take(&key("a"));
        assert!(turn.is_some() && turns.take(&key("b")).is_none() && turns.take(&key("c")).is_none());
        drop(turn);
        assert_eq!(wakes.next().await, key("b"));
        assert!(turns.take(&key("a")).is_none(), "who had it waits for all others");
        let turn = turns.take(&key("b"));
        assert!(turn.is_some());
        drop(turn);
        assert_eq!(wakes.next().await, key("c"));
        turns.forget(&key("c"));
        tokio::time::advance(TO_BEGIN).await;
        assert!(turns.take(&key("z")).is_some(), "nobody waits for one that does not come");
    }
}
