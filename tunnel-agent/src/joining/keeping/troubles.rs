//! Since when something fails, so that it is logged once.

use std::time::Duration;

use api::hub_status::HubStatus;
use hub::Cause;
use net::follow::Complaints;
use serde_json::Value;
use tokio::time::Instant;

use super::STEP;
use crate::joining::JoinError;

/// The complaints about one kind of call, each logged once per cause.
#[derive(Default)]
pub(super) struct Troubles {
    pub(super) complaints: Complaints,
    failures: u32,
}

/// Since when the hub has not known the certificate, after this answer. Silence and server errors
/// say nothing about that: `since` stays.
pub(super) fn since_when(answer: &Result<Value, Cause>, since: Option<Instant>, now: Instant) -> Option<Instant> {
    match answer {
        Err(Cause::Status(HubStatus { code: 401, .. })) => since.or(Some(now)),
        Ok(_) | Err(Cause::Status(HubStatus { code: 400..500, .. })) => None,
        Err(_) => since,
    }
}

// === impl Troubles ===

impl Troubles {
    /// Reports an error; returns the wait before the next attempt.
    pub(super) fn failed(&mut self, error: &JoinError) -> Duration {
        if let Some(reason) = self.complaints.new_cause(error) {
            tracing::warn!(reason, "a step failed, trying again");
        }
        self.failures += 1;
        STEP.wait(self.failures - 1)
    }

    /// The call succeeded.
    pub(super) fn over(&mut self) {
        self.complaints.clear();
        self.failures = 0;
    }
}
