//! What probes said of a cluster so far.

use std::time::Duration;

use super::{BLIND, CONFIRM, CONFIRMED, Cause, EVERY, Health, HealthStatus, LONGEST};
use crate::outcome::Outcome;

/// What is known of one member.
#[derive(Debug, Clone, Default)]
pub struct Record {
    health: Option<Health>,
    /// Failed probes in a row.
    failures: u32,
    /// Probes in a row that did not reach the member.
    blind: u32,
}

// === impl Record ===

impl Record {
    /// None if nothing is known since this program started.
    pub fn health(&self) -> Option<&Health> {
        self.health.as_ref()
    }

    /// Whether the member was healthy in the last probe that reached it, and is not unknown since.
    pub fn is_well(&self) -> bool {
        self.failures == 0 && matches!(self.health, Some(Health { state: HealthStatus::True, .. }))
    }

    /// Takes the outcome of a probe. Returns the longest time until the next.
    pub fn take(&mut self, outcome: Outcome) -> Duration {
        let (cause, message) = match outcome {
            Outcome::Healthy => {
                let message = "the member's API server is ready".to_owned();
                *self = Self { health: Some(Health { state: HealthStatus::True, message }), failures: 0, blind: 0 };
                return EVERY;
            }
            Outcome::NotProbed(message) => return self.doubt(message),
            Outcome::NotReady => (Cause::NotReady, "the member's API server says that it is not ready".to_owned()),
            Outcome::Unreachable(message) => (Cause::Unreachable, message),
        };
        self.blind = 0;
        self.failures = self.failures.saturating_add(1);
        if self.failures < CONFIRMED {
            return CONFIRM;
        }
        self.health = Some(Health { state: HealthStatus::False(cause), message });
        let doubled = EVERY.saturating_mul(1 << (self.failures - CONFIRMED).min(8));
        doubled.min(LONGEST)
    }

    fn doubt(&mut self, message: String) -> Duration {
        self.blind = self.blind.saturating_add(1);
        if self.blind >= BLIND {
            self.health = Some(Health { state: HealthStatus::Unknown, message });
        }
        CONFIRM.saturating_mul(1 << (self.blind - 1).min(8)).min(EVERY)
    }
}
