//! A permit of a limited number, counted while it is held.
//!
//! tokio's semaphores make callers wait, but a permit is refused at once. Also, the owner of a
//! count decides where it is stored.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counted in `of`, and given back when dropped.
pub struct Permit<C> {
    of: Arc<C>,
    count: fn(&C) -> &AtomicUsize,
}

/// Counts one more unless that exceeds `most`. The caller gives it back in its own way.
pub fn raise(count: &AtomicUsize, most: usize) -> bool {
    let more = |current| (current < most).then_some(current + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
}

// === impl Permit ===

impl<C> Permit<C> {
    /// One more, if there are fewer than `most`.
    pub fn within(of: Arc<C>, count: fn(&C) -> &AtomicUsize, most: usize) -> Option<Self> {
        raise(count(&of), most).then(|| Self { of, count })
    }

    /// One more, however many there are, because it exists already.
    pub fn beyond(of: Arc<C>, count: fn(&C) -> &AtomicUsize) -> Self {
        count(&of).fetch_add(1, Ordering::Relaxed);
        Self { of, count }
    }
}

impl Permit<AtomicUsize> {
    /// One more of `count`, if there are fewer than `most`.
    pub fn of(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        Self::within(Arc::clone(count), |count| count, most)
    }
}

impl<C> Drop for Permit<C> {
    fn drop(&mut self) {
        (self.count)(&self.of).fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C> fmt::Debug for Permit<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_there_for_the_next_and_what_is_refused_counts_nothing() {
        let count = Arc::default();
        let [first, second] = [Permit::of(&count, 2), Permit::of(&count, 2)].map(Option::unwrap);
        assert!(Permit::of(&count, 2).is_none());
        drop(first);
        let third = Permit::of(&count, 2).unwrap();
        let fourth = Permit::beyond(Arc::clone(&count), |count: &AtomicUsize| count);
        drop((second, third));
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(fourth);
        assert_eq!(count.load(Ordering::Relaxed), 0);
    }
}
