//! The users that a cluster's credential may impersonate there, kept for a while. `rules_review`
//! asks the member when a request needs it.
//!
//! It decides nothing, the member does. A group that the credential may not impersonate makes a
//! member refuse the whole request, so what is known to be refused is better left out. Where it
//! cannot be known, nothing is.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use api::impersonable::Impersonable;
use net::flight::{Flight, FlightWaiter};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

/// For how long an answer holds.
const KEPT: Duration = Duration::from_mins(5);
/// From this age on it is asked again, while requests use the known answer.
const AGED: Duration = Duration::from_mins(4);
/// So long it is not asked again after nothing was learnt, nor because a member refused what was
/// known to be allowed.
const PAUSE: Duration = Duration::from_secs(10);
static EVERYTHING: LazyLock<Arc<Impersonable>> = LazyLock::new(|| Arc::new(Impersonable::everything()));

/// Of one credential. One that takes its place, in another generation of the Secret, is asked about
/// anew.
#[derive(Default)]
pub struct Rights(Mutex<State>);

#[derive(Default)]
struct State {
    known: Option<Known>,
    asking: Option<Flight<Arc<Impersonable>>>,
}

struct Known {
    told: Arc<Impersonable>,
    /// Other authorizers may allow more than the list says, and no request was refused so far.
    is_doubted: bool,
    since: Instant,
    until: Instant,
}

/// Nothing is left out.
pub fn everything() -> Arc<Impersonable> {
    Arc::clone(&EVERYTHING)
}

// === impl Rights ===

impl Rights {
    /// The known answer; otherwise that of `ask`. If that learns nothing, everything
    /// counts as allowed.
    pub async fn get<A, F>(self: &Arc<Self>, runtime: &Handle, ask: A) -> Arc<Impersonable>
    where
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Option<Impersonable>> + Send + 'static,
    {
        let waiter = {
            let mut state = self.0.lock();
            let known = state.known.as_ref().filter(|known| Instant::now() < known.until);
            let (held, is_aged) = (known.map(Known::held), known.is_some_and(|known| known.since.elapsed() >= AGED));
            match held {
                Some(held) if !is_aged => return held,
                Some(held) => {
                    // The next request has it.
                    drop(self.asked(&mut state, runtime, ask));
                    return held;
                }
                None => self.asked(&mut state, runtime, ask),
            }
        };
        waiter.outcome().await.unwrap_or_else(everything)
    }

    /// Joins the question in flight, or asks it.
    fn asked<A, F>(self: &Arc<Self>, state: &mut State, runtime: &Handle, ask: A) -> FlightWaiter<Arc<Impersonable>>
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
        let known = Known { is_doubted: !told.is_complete(), told, since, until: since + kept };
        let held = known.held();
        self.0.lock().known = Some(known);
        held
    }

    /// The member refused to let the credential impersonate a user, in a request that was made by
    /// `held`. What is held by now is not doubted for what was held before.
    pub fn refused(&self, held: &Arc<Impersonable>) {
        if let Some(known) = &mut self.0.lock().known
            && Arc::ptr_eq(held, &known.held())
        {
            if known.is_doubted {
                known.is_doubted = false;
            } else {
                known.until = known.until.min(known.since + PAUSE);
            }
        }
    }
}

// === impl Known ===

impl Known {
    fn held(&self) -> Arc<Impersonable> {
        if self.is_doubted { everything() } else { Arc::clone(&self.told) }
    }
}

#[cfg(test)]
mod tests;
