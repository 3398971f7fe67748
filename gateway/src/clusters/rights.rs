//! Caches which users a cluster's credential may impersonate on its member. `rules_review` asks the
//! member when a request needs it.
//!
//! The member decides, not this cache. A member refuses a whole request for one group that the
//! credential may not impersonate, so groups that it is known to refuse are left out. If that is
//! unknown, none are.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::impersonable::Impersonable;
use net::flight::{Flight, FlightWaiter};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// How long an answer is valid.
const KEPT: Duration = Duration::from_mins(5);
/// Age after which the member is asked again, while requests use the known answer.
const AGED: Duration = Duration::from_mins(4);
/// Minimum time before the member is asked again, after an answer without a result, or after it
/// refused what it had allowed.
const PAUSE: Duration = Duration::from_secs(10);
static EVERYTHING: LazyLock<Arc<Impersonable>> = LazyLock::new(|| Arc::new(Impersonable::everything()));

/// The permissions of one credential. A new credential, in another generation of the Secret, needs
/// a new answer.
#[derive(Default)]
pub struct Rights(Mutex<LearnedRights>);

#[derive(Default)]
struct LearnedRights {
    known: Option<MemberAnswer>,
    /// The incomplete list that a refusal has shown to be right. It stays so until the member lists
    /// something else: otherwise a request would be refused after each new, equal list.
    confirmed: Option<Arc<Impersonable>>,
    asking: Option<Flight<Arc<Impersonable>>>,
}

/// What the member answered, or everything if it did not.
struct MemberAnswer {
    told: Arc<Impersonable>,
    /// The list is incomplete, because other authorizers may allow more, and no refusal has
    /// confirmed it.
    is_doubted: bool,
    since: Instant,
    until: Instant,
}

/// Leaves nothing out.
pub fn everything() -> Arc<Impersonable> {
    Arc::clone(&EVERYTHING)
}

/// Whether nothing is left out because no list is used. False for a list that allows everything.
pub fn is_everything(held: &Arc<Impersonable>) -> bool {
    Arc::ptr_eq(held, &EVERYTHING)
}

// === impl Rights ===

impl Rights {
    /// Returns the known answer, or otherwise asks with `ask`. If that has no result, everything
    /// counts as allowed.
    pub async fn get<A, F>(self: &Arc<Self>, runtime: &Handle, ask: A) -> Arc<Impersonable>
    where
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Option<Impersonable>> + Send + 'static,
    {
        let waiter = {
            let mut state = self.0.lock();
            let known = state.known.as_ref().filter(|known| Instant::now() < known.until);
            let (held, is_aged) =
                (known.map(MemberAnswer::held), known.is_some_and(|known| known.since.elapsed() >= AGED));
            match held {
                Some(held) if !is_aged => return held,
                Some(held) => {
                    // The next request gets the new answer.
                    drop(self.asked(&mut state, runtime, ask));
                    return held;
                }
                None => self.asked(&mut state, runtime, ask),
            }
        };
        waiter.outcome().await.unwrap_or_else(everything)
    }

    /// Joins the question in flight, or asks a new one.
    fn asked<A, F>(
        self: &Arc<Self>,
        state: &mut LearnedRights,
        runtime: &Handle,
        ask: A,
    ) -> FlightWaiter<Arc<Impersonable>>
    where
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Option<Impersonable>> + Send + 'static,
    {
        if let Some(waiter) = state.asking.as_ref().and_then(Flight::waiter) {
            return waiter;
        }
        let rights = Arc::clone(self);
        let (flight, waiter) = Flight::begin(runtime, async move { rights.learnt(ask().await) });
        state.asking = Some(flight);
        waiter
    }

    fn learnt(&self, told: Option<Impersonable>) -> Arc<Impersonable> {
        let since = Instant::now();
        let (told, kept) = told.map_or_else(|| (everything(), PAUSE), |told| (Arc::new(told), KEPT));
        let mut state = self.0.lock();
        let is_doubted = !told.is_complete() && state.confirmed.as_ref() != Some(&told);
        let known = MemberAnswer { is_doubted, told, since, until: since + kept };
        let held = known.held();
        state.known = Some(known);
        held
    }

    /// The member refused to let the credential impersonate a part of an identity, in a request
    /// made with `held`. A refusal of an earlier answer says nothing about the current one. Returns
    /// the current answer if it is another one.
    pub fn refused(&self, held: &Arc<Impersonable>) -> Option<Arc<Impersonable>> {
        let mut state = self.0.lock();
        let LearnedRights { known, confirmed, .. } = &mut *state;
        let known = known.as_mut()?;
        if Arc::ptr_eq(held, &known.held()) {
            if known.is_doubted {
                known.is_doubted = false;
                *confirmed = Some(Arc::clone(&known.told));
            } else {
                known.until = known.until.min(known.since + PAUSE);
            }
        }
        Some(known.held()).filter(|now| !Arc::ptr_eq(held, now))
    }
}

// === impl MemberAnswer ===

impl MemberAnswer {
    fn held(&self) -> Arc<Impersonable> {
        if self.is_doubted { everything() } else { Arc::clone(&self.told) }
    }
}

#[cfg(test)]
mod tests;
