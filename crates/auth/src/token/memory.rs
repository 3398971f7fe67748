//! Caches token reviews: the hub's answers for seconds, and for longer, which tokens were good.
//!
//! Answers about users and refusals are stored separately, because any client can send invented
//! tokens, and their refusals must not displace the answers about users.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use crate::cache::{Cache, ENTRY, Limits};
use crate::config::ReviewConfig;
use crate::review::QueueKey;
use crate::token_id::TokenId;
use crate::user::User;

/// Most answers about users, in bytes: of usual users some 20,000, and 5,000 of one owner, because
/// the pods of a namespace may be thousands.
const USERS: Limits = Limits::of_users(32 << 20);
/// Most owners of good tokens, in bytes: 30,000 of usual length.
const OWNERS: Limits = Limits::of_users(16 << 20);
/// Most refusals (32 bytes each), and most new tokens under review: honest ones come in a burst
/// only when the gateway starts, and with 64 KiB each they hold at most 64 MiB while they wait.
const STRANGERS: Limits = Limits { kept: 8192, pending: 1024 };
/// How long a good token is reviewed in the users' queue after each proof. Does not mean that it is
/// valid now.
const KNOWN_FOR: Duration = Duration::from_hours(1);

/// The holder of a token; `None` if it was refused.
pub(super) type Holder = Option<Arc<User>>;

#[derive(Debug)]
pub(super) struct Memory {
    users: Cache<TokenId, Holder>,
    strangers: Cache<TokenId, Holder>,
    /// The owners of tokens that were good: of one owner, the latest tokens.
    known: Cache<TokenId, Arc<str>>,
    sharing: ReviewConfig,
}

// === impl Memory ===

impl Memory {
    pub(super) fn new(runtime: &Handle, sharing: ReviewConfig) -> Self {
        let user = |_: &TokenId, holder: &Holder| ENTRY + holder.as_ref().map_or(0, |user| user.bytes());
        let owner = |_: &TokenId, owner: &Arc<str>| ENTRY + owner.len();
        Self {
            users: Cache::weighing(runtime.clone(), USERS, sharing.of_one(USERS), user),
            strangers: Cache::new(runtime.clone(), STRANGERS),
            known: Cache::weighing(runtime.clone(), OWNERS, sharing.of_one(OWNERS), owner),
            sharing,
        }
    }

    pub(super) fn get(&self, id: &TokenId) -> Option<Holder> {
        self.users.get(id).or_else(|| self.strangers.get(id))
    }

    /// The queue for a token that needs a review, and its cache.
    pub(super) fn queue(&self, id: &TokenId) -> (QueueKey, &Cache<TokenId, Holder>) {
        match self.known.get(id) {
            Some(owner) => (QueueKey::Users(owner), &self.users),
            None => (QueueKey::NewTokens, &self.strangers),
        }
    }

    /// Takes in what came out of a review in `queue`. Returns how long the cache of that queue is
    /// to keep it itself. A large user is not kept, but its token is known as good.
    pub(super) fn learn(&self, id: TokenId, queue: &QueueKey, holder: &Holder, lifetime: Duration) -> Duration {
        let Some(user) = holder else { return lifetime };
        let lifetime = if user.bytes() > User::LARGEST_KEPT { Duration::ZERO } else { lifetime };
        let QueueKey::NewTokens = queue else { return lifetime };
        let owner = self.sharing.owner(user);
        // In this order: a reader that finds the token known also finds its holder.
        self.users.put(id, Arc::clone(&owner), holder.clone(), lifetime);
        self.known.put(id, Arc::clone(&owner), owner, KNOWN_FOR);
        Duration::ZERO
    }
}
