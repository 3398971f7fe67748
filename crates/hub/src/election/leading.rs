//! Leadership, for the tasks that write because of it.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One term of leadership. Cheap to clone; what is not held once is never held again, a further
/// term is another value.
#[derive(Debug, Clone)]
pub struct Leading(Arc<Mutex<Option<Instant>>>);

// === impl Leading ===

impl Leading {
    pub(super) fn until(until: Instant) -> Self {
        Self(Arc::new(Mutex::new(Some(until))))
    }

    /// Whether we lead now; ask before each write. It costs one look at the clock and a short lock.
    /// It turns false by itself when renewing gets stuck, with its task or with the hub. Only the
    /// clock must run: on a machine that was suspended, it stays true until the next renewal is
    /// refused.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// For how long we lead if nothing is renewed any more: what a write may take. Others begin
    /// later, by the margin between the term and the lease (3 s by default); a write that is on its
    /// way for longer than both is what no election can prevent.
    pub fn remaining(&self) -> Duration {
        remaining(&mut self.0.lock())
    }

    /// Says whether it is still held: otherwise nothing is changed.
    pub(super) fn extend(&self, to: Instant) -> bool {
        let mut until = self.0.lock();
        let held = !remaining(&mut until).is_zero();
        if held {
            *until = Some(to);
        }
        held
    }

    pub(super) fn end(&self) {
        *self.0.lock() = None;
    }
}

/// Once a task has seen none left, later renewals do not count.
fn remaining(until: &mut Option<Instant>) -> Duration {
    let remaining = until.map(|until| until.saturating_duration_since(Instant::now())).unwrap_or_default();
    if remaining.is_zero() {
        *until = None;
    }
    remaining
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn what_was_not_held_once_is_never_held_again() {
        let leading = Leading::until(Instant::now() + SECOND);
        assert!(leading.extend(Instant::now() + 2 * SECOND));
        advance(SECOND + SECOND / 2).await;
        assert_eq!(leading.remaining(), SECOND / 2);
        advance(SECOND / 2).await;
        assert!(!leading.extend(Instant::now() + SECOND));
        assert!(!leading.is_held());
    }
}
