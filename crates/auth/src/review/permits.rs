//! Permits to ask the hub, so that a crowd of strangers waits for itself and never for users, nor
//! users for it, nor users for one of them.
//!
//! A client without a credential, or with invented tokens, can ask for as many reviews as it likes,
//! and so can a user without any rights. First come, first served over all of them would make
//! others wait for thousands of useless answers.
//!
//! A review's progress shows whether it has its permit: its caller may abandon it before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use net::shares::{QueuePermit, Queues};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most reviews of users and tokens in flight at the hub. Enough for thousands of new identities
/// per second, and few enough to be no flood.
pub(crate) const MAX_OUTSTANDING: usize = 100;
/// Those of them that may be for one owner: a quarter, as of everything else here.
pub(crate) const MAX_OF_ONE: usize = MAX_OUTSTANDING / 4;
/// Those of all that may be for tokens not known to be good: strangers cannot take the rest from
/// users.
pub(crate) const MAX_NEW_TOKENS: usize = 50;
/// Most reviews of anonymous users in flight, in addition: honest ones need only a few.
pub(crate) const MAX_ANONYMOUS: usize = 10;

/// Whether the review is at the hub now, or waits for a permit or its next attempt. Clones share
/// it.
#[derive(Debug, Clone, Default)]
pub struct ReviewProgress(Arc<AtomicBool>);

/// The review is at the hub until this is dropped.
#[derive(Debug)]
pub struct AtHubGuard<'a>(&'a AtomicBool);

/// The user of a review, and so where it queues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueueKey {
    /// Users, and tokens that were good not long ago, by owner.
    Users(Arc<str>),
    /// Tokens not seen before, or only refused.
    NewTokens,
    /// Users without a credential.
    Anonymous,
}

#[derive(Debug)]
pub(crate) struct ReviewPermits {
    outstanding: Semaphore,
    owners: Queues<Arc<str>>,
    new_tokens: Semaphore,
    anonymous: Semaphore,
}

/// May ask the hub. Dropping it lets the next one ask.
#[derive(Debug)]
pub(crate) struct ReviewPermit<'a> {
    _all: SemaphorePermit<'a>,
    _of_owner: Option<QueuePermit<'a, Arc<str>>>,
    _of_new_tokens: Option<SemaphorePermit<'a>>,
}

// === impl ReviewPermits ===

impl ReviewPermits {
    pub(crate) fn new() -> Self {
        Self {
            outstanding: Semaphore::new(MAX_OUTSTANDING),
            owners: Queues::new(MAX_OF_ONE),
            new_tokens: Semaphore::new(MAX_NEW_TOKENS),
            anonymous: Semaphore::new(MAX_ANONYMOUS),
        }
    }

    /// Waits for a permit, first come first served within `queue`. `None` never comes while the
    /// semaphores stay open.
    pub(crate) async fn take(&self, queue: &QueueKey) -> Option<ReviewPermit<'_>> {
        // In this order: only those that have one of the few permits stand in the users' queue.
        let (of_owner, of_new_tokens, all) = match queue {
            QueueKey::Users(owner) => (Some(self.owners.enter(Arc::clone(owner)).await), None, &self.outstanding),
            QueueKey::NewTokens => (None, Some(self.new_tokens.acquire().await.ok()?), &self.outstanding),
            QueueKey::Anonymous => (None, None, &self.anonymous),
        };
        Some(ReviewPermit { _all: all.acquire().await.ok()?, _of_owner: of_owner, _of_new_tokens: of_new_tokens })
    }
}

// === impl QueueKey ===

impl QueueKey {
    /// Whose share the review counts against.
    pub(crate) fn owner(&self) -> Option<Arc<str>> {
        if let Self::Users(owner) = self { Some(Arc::clone(owner)) } else { None }
    }
}

// === impl ReviewProgress ===

impl ReviewProgress {
    /// The review is at the hub from now on, until the guard is dropped.
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
