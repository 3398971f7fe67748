//! Leadership, for tasks that may only write while they lead.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// One term of leadership. Cheap to clone. Once it is lost, it stays lost: a later term has another
/// value.
#[derive(Debug, Clone)]
pub struct Leading(Arc<Mutex<Option<Instant>>>);

// === impl Leading ===

impl Leading {
    pub(super) fn until(until: Instant) -> Self {
        Self(Arc::new(Mutex::new(Some(until))))
    }

    /// Whether we lead now. Ask before each write: it costs one read of the clock and a short lock.
    /// It becomes false by itself when renewals get stuck, in the task or at the hub. It only needs
    /// a running clock: on a machine that was suspended, it stays true until the next renewal is
    /// refused.
    pub fn is_held(&self) -> bool {
        !self.remaining().is_zero()
    }

    /// How long we lead if no further renewal succeeds. A write may take this long. Others start
    /// later, by the margin between the term and the lease (3 s by default). No election can
    /// prevent the effect of a write that is in flight for longer than both.
    pub fn remaining(&self) -> Duration {
        remaining(&mut self.0.lock())
    }

    /// Returns whether it is still held. If not, this changes nothing.
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

/// Clears an expired time: once a task saw zero, later renewals do not count.
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
