//! Runs one term: the claim, and the renewals after it.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::jiff::Timestamp;
use net::follow::Complaints;
use tokio::time::{Instant, sleep_until};

use super::leading::Leading;
use super::lock::{Lock, Setback, Write};
use super::proof::{Loss, Proof, Sent};
use super::timing::Timing;

/// Most writes in flight. By default six fit into the renew deadline, after which each fails.
const WRITES: usize = 8;

/// Keeps the Lease while it is polled. Dropping it ends the term.
pub(super) struct Tenure<'a> {
    lock: &'a Lock,
    timing: Timing,
    proof: Proof,
    leading: Option<Leading>,
    writes: FuturesUnordered<BoxFuture<'a, (Sent, Result<(), Setback>)>>,
    /// When the next renewal is due.
    next: Instant,
    /// The time in the last write.
    written: Timestamp,
    complaints: Complaints,
}

// === impl Tenure ===

impl<'a> Tenure<'a> {
    /// Sends `claim` with the first poll.
    pub(super) fn claim(lock: &'a Lock, timing: Timing, claim: Write) -> Self {
        let mut tenure = Self {
            lock,
            timing,
            proof: Proof::new(timing.term()),
            leading: None,
            writes: FuturesUnordered::new(),
            next: Instant::now(),
            written: Timestamp::UNIX_EPOCH,
            complaints: Complaints::default(),
        };
        tenure.send(claim, true);
        tenure
    }

    /// Waits until a write is acknowledged. Cancel-safe: dropping the future loses nothing.
    pub(super) async fn confirmed(&mut self) -> Result<Leading, Loss> {
        loop {
            if let Some(leading) = &self.leading {
                return Ok(leading.clone());
            }
            self.turn().await?;
        }
    }

    /// Renews until the term is lost.
    pub(super) async fn lost(&mut self) -> Loss {
        loop {
            if let Err(loss) = self.turn().await {
                return loss;
            }
        }
    }

    async fn turn(&mut self) -> Result<(), Loss> {
        let until = self.proof.until();
        tokio::select! {
            biased;
            Some((sent, answer)) = self.writes.next() => self.answered(sent, answer),
            () = sleep_until(until.unwrap_or(self.next)), if until.is_some() => Err(Loss::Lapsed),
            () = sleep_until(self.next) => {
                self.send(Write::Renew, false);
                Ok(())
            }
        }
    }

    /// Renewals begin before the claim has a response. If that takes as long as it may, the first
    /// renewal would be too late otherwise.
    fn send(&mut self, write: Write, claim: bool) {
        let sent = Sent { at: Instant::now(), claim };
        self.next = sent.at + self.timing.retry();
        if self.writes.len() < WRITES {
            self.written = later(Timestamp::now(), self.written);
            let (lock, now) = (self.lock, self.written);
            self.writes.push(Box::pin(async move { (sent, lock.write(write, now).await) }));
        }
    }

    fn answered(&mut self, sent: Sent, answer: Result<(), Setback>) -> Result<(), Loss> {
        match &answer {
            Ok(()) => self.complaints.clear(),
            Err(setback) if self.leading.is_some() => {
                if let Some(reason) = self.complaints.new_cause(setback) {
                    tracing::warn!(lease = %self.lock, reason, "the Lease was not renewed");
                }
            }
            Err(_) => {} // reported with the loss, if it is the claim's
        }
        self.proof.answered(sent, answer, Instant::now())?;
        let Some(until) = self.proof.until() else { return Ok(()) };
        let leading = self.leading.get_or_insert_with(|| Leading::until(until));
        if leading.extend(until) { Ok(()) } else { Err(Loss::Lapsed) }
    }
}

impl Drop for Tenure<'_> {
    fn drop(&mut self) {
        if let Some(leading) = &self.leading {
            leading.end();
        }
    }
}

/// `now` in whole microseconds, the resolution of the Lease, and after `last` even if the clock was
/// set back: others cannot detect a renewal that equals the previous one.
fn later(now: Timestamp, last: Timestamp) -> Timestamp {
    let micros = now.as_microsecond().max(last.as_microsecond().saturating_add(1));
    Timestamp::from_microsecond(micros).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_write_has_a_later_time_whatever_the_clock_does() {
        let at = |micros| Timestamp::from_microsecond(micros).expect("a time");
        assert_eq!(later(at(7), at(5)), at(7));
        for set_back in [5, 4, -1_000_000] {
            assert_eq!(later(at(set_back), at(5)), at(6));
        }
    }
}
