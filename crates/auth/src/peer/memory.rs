//! What a connection remembers of its certificates: verdicts, for as long as they hold.

use std::sync::Arc;

use super::REFUSAL_SECONDS;
use crate::clock::Window;
use crate::identity_headers::IdentityCache;
use crate::token_id::Latest;
use crate::user::User;

/// Results of the connection's earlier requests.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) front_proxy: Option<Verdict<()>>,
    pub(crate) client: Option<Verdict<Option<Arc<User>>>>,
    pub(crate) identities: IdentityCache,
    pub(crate) token: Latest,
}

/// The verdict on a certificate, and its time of validity.
#[derive(Debug)]
pub(crate) struct Verdict<T> {
    /// Generation of the snapshot by which it was judged.
    generation: u64,
    window: Window,
    outcome: Result<T, Arc<str>>,
}

// === impl Verdict ===

impl<T: Clone> Verdict<T> {
    /// Returns the remembered outcome if it is from the snapshot `generation` and still valid at
    /// `now`. Otherwise judges again.
    pub(crate) fn recall(
        slot: &mut Option<Self>,
        generation: u64,
        now: u64,
        judge: impl FnOnce() -> Result<(T, Window), Arc<str>>,
    ) -> Result<T, Arc<str>> {
        if let Some(known) = slot
            && known.generation == generation
            && known.window.contains(now)
        {
            return known.outcome.clone();
        }
        let (window, outcome) = match judge() {
            Ok((value, window)) => (window, Ok(value)),
            Err(why) => (Window { from: now, until: now.saturating_add(REFUSAL_SECONDS) }, Err(why)),
        };
        *slot = Some(Self { generation, window, outcome: outcome.clone() });
        outcome
    }
}
