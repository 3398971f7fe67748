//! The circuit of one member: after several failed dials in a row, further dials fail at once for
//! some time.
//!
//! Otherwise an unreachable member would cost every caller the whole dial timeout, and the gateway
//! a socket and a dial permit for each. After the pause one dial is let through. Its success closes
//! the circuit; its failure opens it for longer. Only dials check the circuit, not requests on open
//! connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use net::backoff::Backoff;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metrics::CircuitGauge;

/// How long the circuit stays open: at first, and after each failure of the dial that it lets
/// through.
const PAUSES: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_secs(30));

/// See the module's text.
pub struct Circuit {
    /// Failures in a row that open it; 0 means never.
    limit: u32,
    state: Mutex<Breaker>,
    gauge: CircuitGauge,
}

enum Breaker {
    Closed { failures: u32 },
    Open(Pause),
}

struct Pause {
    /// Failures of dials that the open circuit let through.
    probes: u32,
    until: Instant,
    /// The dial that was let through has not ended.
    probing: bool,
    failures: u32,
    last: Arc<str>,
}

/// Permission to dial. A drop without a result leaves the circuit as it was.
pub struct Attempt<'a> {
    circuit: &'a Circuit,
    probes: bool,
}

/// A dial that was not tried. The text begins with the last failure.
#[derive(Debug, thiserror::Error)]
#[error("{last} (the last {failures} attempts to connect failed; {next})")]
pub struct CircuitOpen {
    last: Arc<str>,
    failures: u32,
    next: NextAttempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextAttempt {
    Under,
    In(Duration),
}

// === impl Circuit ===

impl Circuit {
    /// A closed circuit that opens after `limit` failed dials in a row; 0 turns it off.
    pub fn new(limit: u32, gauge: CircuitGauge) -> Self {
        gauge.set(false);
        Self { limit, state: Mutex::new(Breaker::Closed { failures: 0 }), gauge }
    }

    /// Checks whether a dial may start now.
    pub fn attempt(&self) -> Result<Attempt<'_>, CircuitOpen> {
        let mut state = self.state.lock();
        let Breaker::Open(pause) = &mut *state else { return Ok(Attempt { circuit: self, probes: false }) };
        let left = pause.until.saturating_duration_since(Instant::now());
        if left.is_zero() && !pause.probing {
            pause.probing = true;
            return Ok(Attempt { circuit: self, probes: true });
        }
        let next = if pause.probing { NextAttempt::Under } else { NextAttempt::In(left) };
        Err(CircuitOpen { last: Arc::clone(&pause.last), failures: pause.failures, next })
    }

    fn close(&self) {
        *self.state.lock() = Breaker::Closed { failures: 0 };
        self.gauge.set(false);
    }

    fn count_failure(&self, probed: bool, error: &dyn fmt::Display) {
        let mut state = self.state.lock();
        let (failures, probes) = match &*state {
            Breaker::Closed { failures } => (failures.saturating_add(1), 0),
            Breaker::Open(pause) if probed => (pause.failures.saturating_add(1), pause.probes.saturating_add(1)),
            // A dial from before the circuit opened shows nothing new.
            Breaker::Open(_) => return,
        };
        if self.limit == 0 || failures < self.limit {
            *state = Breaker::Closed { failures };
            return;
        }
        let until = Instant::now() + PAUSES.wait(probes);
        *state = Breaker::Open(Pause { probes, until, probing: false, failures, last: error.to_string().into() });
        self.gauge.set(true);
    }
}

// === impl Attempt ===

impl Attempt<'_> {
    /// Reports that the member answered.
    pub fn succeeded(self) {
        self.circuit.close();
    }

    /// Reports that the dial failed.
    pub fn failed(mut self, error: &dyn fmt::Display) {
        self.circuit.count_failure(self.probes, error);
        self.probes = false;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        // Cancelled, or failed for another reason than the member, so the next dial may try.
        if self.probes
            && let Breaker::Open(pause) = &mut *self.circuit.state.lock()
        {
            pause.probing = false;
        }
    }
}

// === impl NextAttempt ===

impl fmt::Display for NextAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Under => write!(f, "the next attempt is in progress"),
            Self::In(left) => write!(f, "the next attempt is in {:.1}s", left.as_secs_f64()),
        }
    }
}

#[cfg(test)]
mod tests;
