//! Waiting for a Lease that another holds.

use net::follow::Complaints;
use tokio::time::{Instant, sleep_until};

use super::identity::Identity;
use super::lock::{Lock, Seen, Write};
use super::observed::{Observed, Verdict};
use super::timing::Timing;

/// Looks at the Lease now and then.
pub(super) struct Candidacy {
    timing: Timing,
    observed: Observed,
    complaints: Complaints,
}

// === impl Candidacy ===

impl Candidacy {
    pub(super) fn new(me: Identity, timing: Timing) -> Self {
        Self { timing, observed: Observed::new(me, timing.lease()), complaints: Complaints::default() }
    }

    /// Waits until the Lease may be claimed; says how. Nothing is lost when the future is dropped
    /// before.
    pub(super) async fn wait(&mut self, lock: &Lock) -> Write {
        loop {
            let seen = lock.look().await;
            let now = Instant::now();
            let next = match seen {
                Ok(seen) => {
                    self.complaints.clear();
                    match self.judge(lock, seen, now) {
                        Ok(claim) => return claim,
                        Err(held) => held.min(now + self.timing.pause()),
                    }
                }
                Err(cause) => {
                    if let Some(reason) = self.complaints.new_cause(&cause) {
                        tracing::warn!(lease = %lock, reason, "the Lease cannot be read");
                    }
                    now + self.timing.pause()
                }
            };
            sleep_until(next).await;
        }
    }

    /// How to claim what was seen, or until when it is another's.
    fn judge(&mut self, lock: &Lock, seen: Option<Seen>, now: Instant) -> Result<Write, Instant> {
        let (record, version) = seen.map(|Seen { record, version }| (record, version)).unzip();
        let before = self.observed.holder().map(str::to_owned);
        match self.observed.see(record, now) {
            Verdict::Create => Ok(Write::Create),
            Verdict::Resume => Ok(Write::Renew),
            Verdict::Take { transitions } => Ok(Write::Take { version: version.unwrap_or_default(), transitions }),
            Verdict::Held(until) => {
                let holder = self.observed.holder();
                if holder != before.as_deref() {
                    tracing::info!(lease = %lock, holder, "another leads");
                }
                Err(until)
            }
        }
    }
}
