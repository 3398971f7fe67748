//! One plugin with its arguments, and the last credential that it issued.
//!
//! Requests read the current credential without a lock. All other decisions are made under one
//! lock, by [`Runs`]. Waiting happens outside of it.

mod runs;

use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use net::flight::{Flight, FlightWaiter};
use parking_lot::Mutex;
use tokio::time::Instant;

use self::runs::{PAUSES, Runs};
use super::{Credentials, Observer};
use crate::credential::Issued;
use crate::error::ExecError;
use crate::plugins::Standing;
use crate::request::{Fingerprint, Request};

type Outcome = Result<Arc<Issued>, Arc<ExecError>>;

pub(super) struct Entry {
    fingerprint: Fingerprint,
    request: Arc<Request>,
    credentials: Arc<Credentials>,
    current: ArcSwapOption<Issued>,
    state: Mutex<Runs>,
}

/// What to do when a credential is needed.
enum Step {
    Wait(FlightWaiter<Outcome>),
    Fail(Arc<ExecError>),
}

// === impl Entry ===

impl Entry {
    pub(super) fn new(fingerprint: Fingerprint, request: Request, credentials: Arc<Credentials>) -> Self {
        let (current, state) = (ArcSwapOption::empty(), Mutex::default());
        Self { fingerprint, request: Arc::new(request), credentials, current, state }
    }

    /// The credential, if it is fresh. The fast path.
    pub(super) fn current(&self) -> Option<Arc<Issued>> {
        self.current.load_full().filter(|issued| issued.is_fresh())
    }

    pub(super) fn is_current(&self, issued: &Arc<Issued>) -> bool {
        self.current.load().as_ref().is_some_and(|current| Arc::ptr_eq(current, issued)) && issued.is_fresh()
    }

    fn valid(&self) -> Option<Arc<Issued>> {
        self.current.load_full().filter(|issued| issued.is_valid())
    }

    pub(super) async fn get(self: &Arc<Self>, observer: &Observer) -> Outcome {
        let step = {
            let mut state = self.state.lock();
            match self.valid() {
                Some(issued) if issued.is_fresh() => return Ok(issued),
                Some(issued) => {
                    // The current credential is valid until its end, so a failure does not matter
                    // yet.
                    let _ = self.next(&mut state, observer);
                    return Ok(issued);
                }
                None => self.next(&mut state, observer),
            }
        };
        self.follow(step).await
    }

    pub(super) async fn renew(
        self: &Arc<Self>,
        rejected: &Arc<Issued>,
        observer: &Observer,
    ) -> Result<Option<Arc<Issued>>, Arc<ExecError>> {
        let step = {
            let mut state = self.state.lock();
            if let Some(issued) = self.valid().filter(|issued| !Arc::ptr_eq(issued, rejected)) {
                return Ok(Some(issued));
            }
            match state.flight() {
                Some(waiter) => Step::Wait(waiter),
                None if state.failed().is_none() && state.reject_early(rejected) => return Ok(None),
                None => {
                    let step = self.next(&mut state, observer);
                    if matches!(step, Step::Wait(_)) {
                        state.rejections = state.rejections.saturating_add(1);
                    }
                    step
                }
            }
        };
        self.follow(step).await.map(Some)
    }

    /// Joins the current run, or begins one unless the last has just failed.
    fn next(self: &Arc<Self>, state: &mut Runs, observer: &Observer) -> Step {
        if let Some(waiter) = state.flight() {
            return Step::Wait(waiter);
        }
        if let Some(error) = state.failed() {
            return Step::Fail(error);
        }
        let (flight, waiter) = self.take_off(self.standing(state), observer);
        state.flight = Some(flight);
        Step::Wait(waiter)
    }

    fn standing(&self, state: &Runs) -> Standing {
        match state {
            Runs { failures: 1.., .. } => Standing::Suspect,
            _ if self.current.load().is_some() => Standing::Proven,
            Runs { slow: true, .. } => Standing::Slow,
            _ => Standing::New,
        }
    }

    /// The task holds the entry weakly, because without a cluster the credential has no use.
    fn take_off(self: &Arc<Self>, standing: Standing, observer: &Observer) -> (Flight<Outcome>, FlightWaiter<Outcome>) {
        let runner = Arc::clone(&self.credentials.runner);
        let (request, entry, observer) = (Arc::clone(&self.request), Arc::downgrade(self), Arc::clone(observer));
        Flight::begin(&self.credentials.runtime, async move {
            let outcome = runner.run(request, standing).await.map(Arc::new).map_err(Arc::new);
            observer(&outcome);
            land(&entry, &outcome);
            outcome
        })
    }

    async fn follow(&self, step: Step) -> Outcome {
        match step {
            Step::Wait(waiter) => waiter.outcome().await.unwrap_or_else(|| Err(Arc::new(ExecError::Ended))),
            Step::Fail(error) => Err(error),
        }
    }
}

/// Runs before the waiters get the outcome: a later caller must find the same one.
fn land(entry: &Weak<Entry>, outcome: &Outcome) {
    let Some(entry) = entry.upgrade() else { return };
    let mut state = entry.state.lock();
    state.flight = None;
    match outcome {
        Ok(issued) => {
            entry.current.store(Some(Arc::clone(issued)));
            state.failure = None;
            state.failures = 0;
        }
        Err(error) => {
            let until = Instant::now() + PAUSES.wait(state.failures);
            state.failure = Some((Arc::clone(error), until));
            match **error {
                // Other plugins that hang are not a failure of this one.
                ExecError::Busy { slow, .. } => state.slow |= slow,
                _ => state.failures = state.failures.saturating_add(1),
            }
        }
    }
    drop(state);
}

impl Drop for Entry {
    fn drop(&mut self) {
        if let Some(flight) = self.state.get_mut().flight.take() {
            flight.abort();
        }
        self.credentials.forget(&self.fingerprint);
    }
}
