//! Waits for a Lease that another contender holds.

use std::time::Duration;

use futures_util::StreamExt as _;
use net::follow::Complaints;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::identity::Identity;
use super::lock::{Lock, VersionedRecord, Write};
use super::observed::{Observed, Verdict};
use super::timing::Timing;
use crate::failure::Cause;

/// Pause before another watch request after the hub refused one: each refusal is an entry in its
/// audit log. The permission may be granted later.
const REFUSED: Duration = Duration::from_mins(1);

/// Follows the Lease with a watch. A watch that misses or delays an event costs time and no safety:
/// before a claim because of silence, the contender reads the Lease, and each claim depends on the
/// version that was judged.
pub(super) struct Candidacy {
    timing: Timing,
    observed: Observed,
    complaints: Complaints,
    /// Complaints about watches. Without a watch, the Lease is polled.
    of_watches: Complaints,
    /// No watch is requested before this time.
    refused: Option<Instant>,
}

// === impl Candidacy ===

impl Candidacy {
    pub(super) fn new(me: Identity, timing: Timing) -> Self {
        let observed = Observed::new(me, timing.lease());
        let (complaints, of_watches) = (Complaints::default(), Complaints::default());
        Self { timing, observed, complaints, of_watches, refused: None }
    }

    /// Waits until the Lease may be claimed. Returns how. Cancel-safe: dropping the future loses
    /// nothing.
    pub(super) async fn wait(&mut self, lock: &Lock) -> Write {
        loop {
            let seen = lock.look().await;
            let now = Instant::now();
            match seen {
                Ok(seen) => {
                    self.complaints.clear();
                    let version = seen.as_ref().map(|seen| seen.version.clone());
                    match (self.judge(lock, seen, now), version) {
                        (Ok(claim), _) => return claim,
                        (Err(held), Some(version)) => {
                            if let Some(claim) = self.follow(lock, &version, held).await {
                                return claim;
                            }
                        }
                        (Err(held), None) => sleep_until(held.min(now + self.timing.pause())).await,
                    }
                }
                Err(cause) => {
                    if let Some(reason) = self.complaints.new_cause(&cause) {
                        tracing::warn!(lease = %lock, reason, "the Lease cannot be read");
                    }
                    sleep_until(now + self.timing.pause()).await;
                }
            }
        }
    }

    /// Follows the Lease from `version` on. Another contender holds it until `held`. Returns how to
    /// claim it. Returns `None` when the Lease must be read: it expired, the watch ended, or the
    /// watch is more silent than a renewing holder allows.
    async fn follow(&mut self, lock: &Lock, version: &str, held: Instant) -> Option<Write> {
        let (began, silence) = (Instant::now(), self.timing.silence());
        let pause = began + self.timing.pause();
        if self.refused.is_some_and(|until| began < until) {
            sleep_until(held.min(pause)).await;
            return None;
        }
        let mut changes = match timeout_at(held.min(began + silence), lock.follow(version)).await {
            Ok(Ok(changes)) => changes,
            Ok(Err(cause)) => {
                self.refused = is_refusal(&cause).then(|| began + REFUSED);
                self.tell(lock, &cause);
                sleep_until(held.min(pause)).await;
                return None;
            }
            Err(_) => return None,
        };
        let mut next = held.min(Instant::now() + silence);
        loop {
            let change = tokio::select! {
                change = changes.next() => change,
                () = sleep_until(next) => return None,
            };
            let now = Instant::now();
            match change {
                Some(Ok(seen)) => match self.judge(lock, seen, now) {
                    Ok(claim) => return Some(claim),
                    Err(held) => {
                        self.of_watches.clear();
                        next = held.min(now + silence);
                    }
                },
                ended => {
                    if let Some(Err(cause)) = ended {
                        self.tell(lock, &cause);
                    }
                    sleep_until(next.min(pause)).await;
                    return None;
                }
            }
        }
    }

    fn tell(&mut self, lock: &Lock, cause: &Cause) {
        if let Some(reason) = self.of_watches.new_cause(cause) {
            tracing::warn!(lease = %lock, reason, "cannot watch the Lease: reading it from time to time");
        }
    }

    /// How to claim the Lease as seen, or until when another contender holds it.
    fn judge(&mut self, lock: &Lock, seen: Option<VersionedRecord>, now: Instant) -> Result<Write, Instant> {
        let (record, version) = seen.map(|VersionedRecord { record, version }| (record, version)).unzip();
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

/// Whether a retry would be refused again.
fn is_refusal(cause: &Cause) -> bool {
    matches!(cause.code(), Some(401 | 403 | 405))
}
