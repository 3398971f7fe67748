//! Writes of a leader: each ends before another's can begin.

use std::sync::Arc;
use std::time::Duration;

/// For how long this process may write from now on; zero if it does not lead.
pub type MayWrite = Arc<dyn Fn() -> Duration + Send + Sync>;

/// For one call.
pub const WITHIN: Duration = Duration::from_secs(10);
/// A call that ends this long after its caller's term ends before another's begins.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// Another replica writes now.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not lead")]
pub struct NotLeading;

/// For how long a call may take that writes, of one who leads for `term`.
pub fn within(term: Duration) -> Result<Duration, NotLeading> {
    within_at_most(term, WITHIN)
}

/// The same for a call that may take longer, or less, than others.
pub fn within_at_most(term: Duration, most: Duration) -> Result<Duration, NotLeading> {
    if term.is_zero() { Err(NotLeading) } else { Ok(term.saturating_add(AFTER_TERM).min(most)) }
}
