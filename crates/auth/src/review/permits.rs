//! Permits to ask the hub, so that a crowd of strangers waits for itself and never for users, nor
//! users for it.
//!
//! A client without a credential, or with invented tokens, can ask for as many reviews as it likes.
//! First come, first served over all of them would make known users wait for thousands of useless
//! answers.
//!
//! A review's progress says whether it has its permit: its caller may give it up before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Reviews of users and tokens in flight at the hub. Enough for thousands of new identities a
/// second, few enough not to be a flood.
pub(crate) const MAX_OUTSTANDING: usize = 100;
/// Those of them that may be for tokens not known to be good: strangers cannot take the rest from
/// users.
pub(crate) const MAX_NEW_TOKENS: usize = 50;
/// Reviews of anonymous users in flight, beside the others: it takes only a few to answer honest
/// ones.
pub(crate) const MAX_ANONYMOUS: usize = 10;

/// Whether the review is at the hub just now, or waits for a permit or its next attempt. Clones
/// share it.
#[derive(Debug, Clone, Default)]
pub struct ReviewProgress(Arc<AtomicBool>);

/// The review is at the hub until this is dropped.
#[derive(Debug)]
pub struct AtHubGuard<'a>(&'a AtomicBool);

/// The user of a review, and so where it queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Line {
    /// Users, and tokens that were good not long ago.
    Users,
    /// Tokens not seen before, or only refused.
    NewTokens,
    /// Users without a credential.
    Anonymous,
}

#[derive(Debug)]
pub(crate) struct ReviewPermits {
    outstanding: Semaphore,
    new_tokens: Semaphore,
    anonymous: Semaphore,
}

/// May ask the hub. Dropping it lets the next one ask.
#[derive(Debug)]
pub(crate) struct ReviewPermit<'a> {
    _permits: (SemaphorePermit<'a>, Option<SemaphorePermit<'a>>),
}

// === impl ReviewPermits ===

impl ReviewPermits {
    pub(crate) fn new() -> Self {
        Self {
            outstanding: Semaphore::new(MAX_OUTSTANDING),
            new_tokens: Semaphore::new(MAX_NEW_TOKENS),
            anonymous: Semaphore::new(MAX_ANONYMOUS),
        }
    }

    /// Waits for a permit, first come first served within `line`. `None` never comes while the
    /// semaphores stay open.
    pub(crate) async fn take(&self, line: Line) -> Option<ReviewPermit<'_>> {
        let permits = match line {
            Line::Users => (self.outstanding.acquire().await.ok()?, None),
            // In this order: only those that have one of the few permits stand in the users' queue.
            Line::NewTokens => {
                let own = self.new_tokens.acquire().await.ok()?;
                (own, Some(self.outstanding.acquire().await.ok()?))
            }
            Line::Anonymous => (self.anonymous.acquire().await.ok()?, None),
        };
        Some(ReviewPermit { _permits: permits })
    }
}

// === impl ReviewProgress ===

impl ReviewProgress {
    /// From now on, until what is returned is dropped.
    pub fn enter_hub(&self) -> AtHubGuard<'_> {
        self.0.store(true, Ordering::Relaxed);
        AtHubGuard(&self.0)
    }

    pub(crate) fn is_at_hub(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

// === impl AtHubGuard ===

impl Drop for AtHubGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
