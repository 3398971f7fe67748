//! Limits a leader's writes to its term: each ends before another leader's can begin.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

/// How long this process may write from now on; zero if it does not lead.
pub type MayWrite = Arc<dyn Fn() -> Duration + Send + Sync>;

/// One term, for the tasks that work in it. Before it begins, they may read to prepare, but must
/// not write.
#[derive(Clone)]
pub struct Term(watch::Receiver<Option<MayWrite>>);

/// Begins a term, once.
pub struct Begin(watch::Sender<Option<MayWrite>>);

/// Timeout of one call.
pub const WITHIN: Duration = Duration::from_secs(10);
/// A call that ends at most this long after its term still ends before another leader's term
/// begins.
const AFTER_TERM: Duration = Duration::from_secs(2);

/// Another replica leads, and writes.
#[derive(Debug, thiserror::Error)]
#[error("this replica does not lead")]
pub struct NotLeading;

/// Timeout of a write by a leader whose term lasts for `term` from now.
pub fn within(term: Duration) -> Result<Duration, NotLeading> {
    within_at_most(term, WITHIN)
}

/// Like [`within`], for a call with another limit.
pub fn within_at_most(term: Duration, most: Duration) -> Result<Duration, NotLeading> {
    if term.is_zero() { Err(NotLeading) } else { Ok(term.saturating_add(AFTER_TERM).min(most)) }
}

// === impl Term ===

impl Term {
    /// A term that has not begun.
    pub fn ahead() -> (Begin, Self) {
        let (begin, term) = watch::channel(None);
        (Begin(begin), Self(term))
    }

    /// A term that has begun.
    #[cfg(test)]
    pub fn begun(may_write: MayWrite) -> Self {
        let (begin, term) = Self::ahead();
        begin.now(may_write);
        term
    }

    /// A term that has begun and has no end.
    #[cfg(test)]
    pub fn endless() -> Self {
        Self::begun(Arc::new(|| Duration::MAX))
    }

    /// Completes when the term begins; never, if it never begins.
    pub async fn begins(&self) {
        if self.0.clone().wait_for(Option::is_some).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    pub fn has_begun(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub fn may_write(&self) -> MayWrite {
        let term = self.0.clone();
        Arc::new(move || term.borrow().as_ref().map_or(Duration::ZERO, |may_write| may_write()))
    }
}

// === impl Begin ===

impl Begin {
    /// Begins the term. `may_write` says how long this process may write.
    pub fn now(&self, may_write: MayWrite) {
        self.0.send_replace(Some(may_write));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn nothing_is_written_before_the_term_begins() {
        let (begin, term) = Term::ahead();
        let may_write = term.may_write();
        assert!(within(may_write()).is_err() && !term.has_begun() && term.begins().now_or_never().is_none());
        begin.now(Arc::new(|| WITHIN));
        term.begins().await;
        assert!(within(may_write()).is_ok() && term.has_begun());
        // The term continues after `Begin` is dropped: its end comes from `may_write`.
        drop(begin);
        assert_eq!(may_write(), WITHIN);
        let (begin, term) = Term::ahead();
        drop(begin);
        assert!(term.begins().now_or_never().is_none(), "it never begins");
    }
}
