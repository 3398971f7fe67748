//! Bearer tokens and their holders.
//!
//! The token file is checked first, then the hub. The hub's answers are cached for seconds under a
//! keyed hash of the token. Only the connection that sent a token keeps the token itself, while it
//! is open ([`Latest`](crate::token_id::Latest)). The key is random for each process, so that one
//! process's memory shows nothing about another's tokens (`pkg/authentication/token/cache` does the
//! same).

mod file;
mod memory;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::authentication::v1::{TokenReviewSpec, TokenReviewStatus, UserInfo};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::runtime::Handle;

use self::memory::{Holder, Memory};
use crate::cache::Loaded;
use crate::config::ReviewConfig;
use crate::metrics::{Kind, Metrics};
use crate::peer::Peer;
use crate::review::Opinion;
use crate::review::{QueueKey, ReviewError, ReviewProgress, Reviewer};
use crate::token_id::{TokenHasher, TokenId};
use crate::user::User;

pub(crate) use self::file::TokenFile;
pub use self::file::TokenFileError;

/// How long a refusal with an error text is cached: it may be a temporary failure of the hub's own
/// authenticators (upstream does not cache these at all, at the price of one review for each
/// request with a bad token).
const UNSURE_REFUSAL: Duration = Duration::from_secs(1);
/// Longest token that is accepted, in bytes. The hub's own limit for a request head is 1 MiB, and
/// real tokens are shorter than 20 KiB.
const MAX_TOKEN_BYTES: usize = 64 * 1024;

/// The sources of identity for tokens. Without any, every token is refused.
#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) file: Option<TokenFile>,
    pub(crate) hub: Option<HubTokens>,
}

/// Cached `TokenReview`s.
#[derive(Debug)]
pub(crate) struct HubTokens {
    memory: Arc<Memory>,
    reviewer: Arc<Reviewer>,
    hasher: TokenHasher,
    lifetime: Duration,
    metrics: Metrics,
}

/// A token that is being looked up.
#[derive(Clone, Copy)]
struct Presented<'a> {
    token: &'a [u8],
    peer: Option<&'a Peer>,
}

// === impl Tokens ===

impl Tokens {
    /// The holder of `token`. An unknown token is refused, because a bad token must not count as
    /// none.
    pub(crate) async fn authenticate(&self, token: &[u8]) -> Opinion {
        self.look_up(Presented { token, peer: None }).await
    }

    /// The same as [`Tokens::authenticate`], for the token that requests of `peer` usually have.
    pub(crate) async fn authenticate_of(&self, peer: &Peer, token: &[u8]) -> Opinion {
        self.look_up(Presented { token, peer: Some(peer) }).await
    }

    /// The same, but only if the holder is known. Does not ask the hub.
    pub(crate) fn remembered_of(&self, peer: &Peer, token: &[u8]) -> Option<Arc<User>> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let presented = Presented { token, peer: Some(peer) };
        let by_hub = || self.hub.as_ref().and_then(|hub| hub.remembered(&presented.id(&hub.hasher)));
        self.in_file(presented).or_else(by_hub)
    }

    fn in_file(&self, presented: Presented<'_>) -> Option<Arc<User>> {
        self.file.as_ref().and_then(|file| file.find(&presented.id(file.hasher())))
    }

    async fn look_up(&self, presented: Presented<'_>) -> Opinion {
        let token = presented.token;
        if token.len() > MAX_TOKEN_BYTES {
            return Opinion::Refused(Arc::from("bearer token: too long"));
        }
        if let Some(user) = self.in_file(presented) {
            return Opinion::User(user);
        }
        match &self.hub {
            Some(hub) => hub.authenticate(presented.id(&hub.hasher), token).await,
            None => refused(),
        }
    }
}

fn refused() -> Opinion {
    Opinion::Refused(Arc::from("bearer token: invalid"))
}

// === impl HubTokens ===

impl HubTokens {
    pub(crate) fn new(
        reviewer: Arc<Reviewer>,
        lifetime: Duration,
        sharing: ReviewConfig,
        runtime: &Handle,
        metrics: Metrics,
    ) -> Self {
        let memory = Arc::new(Memory::new(runtime, sharing));
        Self { memory, reviewer, hasher: TokenHasher::new(), lifetime, metrics }
    }

    /// Does not count a miss, because the caller then asks again.
    fn remembered(&self, id: &TokenId) -> Option<Arc<User>> {
        let user = self.memory.get(id).flatten()?;
        self.metrics.cache_lookup(Kind::Token, true);
        Some(user)
    }

    async fn authenticate(&self, id: TokenId, token: &[u8]) -> Opinion {
        let kept = self.memory.get(&id);
        self.metrics.cache_lookup(Kind::Token, kept.is_some());
        let outcome = match kept {
            Some(user) => Ok(user),
            None => Box::pin(self.review(id, token)).await,
        };
        match outcome {
            Ok(Some(user)) => Opinion::User(user),
            Ok(None) => refused(),
            Err(error) => Opinion::Failed(error),
        }
    }

    async fn review(&self, id: TokenId, token: &[u8]) -> Result<Holder, ReviewError> {
        let Ok(token) = std::str::from_utf8(token) else { return Ok(None) };
        let (queue, cache) = self.memory.queue(&id);
        let owner = queue.owner();
        let load = |progress| {
            let (reviewer, memory, lifetime) = (Arc::clone(&self.reviewer), Arc::clone(&self.memory), self.lifetime);
            let token = SecretString::from(token);
            async move {
                let (holder, lifetime) = review(&reviewer, queue.clone(), &progress, token, lifetime).await?;
                let lifetime = memory.learn(id, &queue, &holder, lifetime);
                Ok((holder, lifetime))
            }
        };
        let outcome = cache.get_or_load_for(owner, Arc::new(id), None, load).await;
        if let Err(ReviewError::Busy(_)) = outcome {
            self.metrics.turned_away(Kind::Token);
        }
        outcome
    }
}

async fn review(
    reviewer: &Reviewer,
    queue: QueueKey,
    progress: &ReviewProgress,
    token: SecretString,
    lifetime: Duration,
) -> Loaded<Holder> {
    let spec = || TokenReviewSpec { audiences: None, token: Some(token.expose_secret().to_owned()) };
    let status = reviewer.token(queue, progress, spec).await?;
    let unsure = status.error.as_deref().is_some_and(|error| !error.is_empty());
    let user = user(status).map(Arc::new);
    let lifetime = if user.is_none() && unsure { lifetime.min(UNSURE_REFUSAL) } else { lifetime };
    Ok((user, lifetime))
}

/// `authenticated` decides, not the 201 or the presence of a user: a hub that refuses a token may
/// still describe a user.
pub(crate) fn user(status: TokenReviewStatus) -> Option<User> {
    if status.authenticated != Some(true) {
        return None;
    }
    let UserInfo { username, uid, groups, extra } = status.user?;
    let name = username.filter(|name| !name.is_empty())?;
    let uid = uid.filter(|uid| !uid.is_empty());
    let user = User { name, uid, groups: groups.unwrap_or_default(), extra: extra.unwrap_or_default() };
    Some(user.with_authenticated_group())
}

// === impl Presented ===

impl Presented<'_> {
    fn id(self, hasher: &TokenHasher) -> TokenId {
        match self.peer {
            Some(peer) => peer.memory().token.id(self.token, hasher),
            None => hasher.id(self.token),
        }
    }
}

#[cfg(test)]
mod tests;
