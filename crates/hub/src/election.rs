//! Elects one leader among replicas with a `coordination.k8s.io/v1` Lease. Other programs may
//! contend for the same Lease with client-go's `tools/leaderelection`, which has these rules:
//!
//! - A holder that changes nothing in its Lease for `leaseDurationSeconds` is dead. Each contender
//!   measures that time on its own clock, from when it *saw* the last change. Clocks are never
//!   compared.
//! - A takeover names the version of the Lease that it replaces, so that one of many succeeds.
//! - A holder that cannot renew stops in time, before another contender may start.
//!
//! One thing differs. client-go sends one renewal at a time, and counts its deadline from the
//! response to the previous one. A slow API server may have carried out that renewal long before it
//! responded: the others count from then, so the leader leads beyond the end of its Lease. Counting
//! from when a renewal was sent is safe, but sequential renewals of 9 s each are too slow for a
//! Lease of 15 s. Here each renewal counts from when it was *sent*, and the next one goes out one
//! retry period later, with or without a response. So a renewal depends on the holder of the Lease
//! (a JSON patch with a `test`), and not on its version: only the response to the previous renewal
//! contains that.
//!
//! A waiting contender watches the Lease, while client-go reads it once per retry period. The
//! contender sees a renewal when it is written. So it replaces a dead leader one Lease duration
//! after the last renewal, and a leader that releases the Lease at once.
//!
//! Needs the permissions `get`, `create`, `patch` and `watch` on the Lease. Without `watch`, the
//! contender polls it as client-go does.

mod candidacy;
mod identity;
mod leading;
mod lock;
mod observed;
mod proof;
mod tenure;
mod timing;

use std::future::Future;
use std::pin::{Pin, pin};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use net::follow::Complaints;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub use self::identity::Identity;
pub use self::leading::Leading;
pub use self::timing::{Timing, TimingError};

use self::candidacy::Candidacy;
use self::lock::{Lock, Setback, Write};
use self::proof::Loss;
use self::tenure::Tenure;

/// One contender.
pub struct Election {
    lock: Lock,
    timing: Timing,
    candidacy: Candidacy,
    leads: watch::Sender<bool>,
    /// Complaints about claims.
    complaints: Complaints,
}

/// Shows that we lead, until it is dropped.
struct Sign<'a>(&'a watch::Sender<bool>);

// === impl Election ===

impl Election {
    /// A contender for the Lease `name` in `namespace`. Creates the Lease if it is missing. Sends
    /// nothing yet.
    ///
    /// `client` should not retry by itself, and the clients of [`crate::client`] do not: a write
    /// that a hidden retry carries out would count from when the first try was sent.
    pub fn new(client: Client, namespace: &str, name: &str, identity: Identity, timing: Timing) -> Self {
        Self {
            candidacy: Candidacy::new(identity.clone(), timing),
            lock: Lock::new(client, namespace, name, identity, timing),
            timing,
            leads: watch::Sender::new(false),
            complaints: Complaints::default(),
        }
    }

    /// Whether we lead, for metrics and people. Writes that need leadership must ask
    /// [`Leading::is_held`], which does not depend on a task being woken in time.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Contends until `stop`. Whenever we lead, runs the future that `work` makes, with a
    /// [`Leading`] of that term.
    ///
    /// Drops the work when its term ends. A later term may start new work. The work shares the task
    /// of this future: if it blocks the task, no renewal is sent and the term is lost. The work
    /// itself must end the tasks that it spawned. These see the end of the term by
    /// [`Leading::is_held`].
    ///
    /// Returns the value of work that completed, or `None` after `stop`. In both cases the work has
    /// ended by then, and another contender may take over the Lease at once. Work that must finish
    /// before that watches a signal of its own, such as the soft one of [`net::drain::Drain`], and
    /// returns. The hard one is `stop`.
    ///
    /// Dropping this future does not release the Lease: others wait for it to expire. A program
    /// that contends again must use another [`Identity`].
    pub async fn run<T, F: Future<Output = T>>(
        mut self,
        stop: impl Future<Output = ()>,
        mut work: impl FnMut(Leading) -> F,
    ) -> Option<T> {
        let mut stop = pin!(stop);
        loop {
            let claim = tokio::select! {
                biased;
                () = &mut stop => return None,
                claim = self.candidacy.wait(&self.lock) => claim,
            };
            match self.lead(claim, stop.as_mut(), &mut work).await {
                Ok(end) => {
                    self.release().await;
                    return end;
                }
                Err(loss) => self.tell(&loss),
            }
            tokio::select! {
                biased;
                () = &mut stop => return None,
                () = sleep(self.timing.pause()) => {}
            }
        }
    }

    /// Runs one term and its work, which has ended when this returns.
    async fn lead<T, F: Future<Output = T>, S: Future<Output = ()>>(
        &mut self,
        claim: Write,
        mut stop: Pin<&mut S>,
        work: &mut impl FnMut(Leading) -> F,
    ) -> Result<Option<T>, Loss> {
        let mut tenure = Tenure::claim(&self.lock, self.timing, claim);
        let leading = tokio::select! {
            biased;
            () = stop.as_mut() => return Ok(None),
            confirmed = tenure.confirmed() => confirmed?,
        };
        self.complaints.clear();
        tracing::info!(lease = %self.lock, identity = %self.lock.me(), "leading");
        let _sign = Sign::show(&self.leads);
        let mut work = pin!(work(leading));
        tokio::select! {
            biased;
            () = stop => Ok(None),
            loss = tenure.lost() => Err(loss),
            value = &mut work => Ok(Some(value)),
        }
    }

    fn tell(&mut self, loss: &Loss) {
        match loss {
            Loss::Unclaimed(Setback::Refused(_)) => tracing::debug!(lease = %self.lock, "another was faster"),
            Loss::Unclaimed(setback) => {
                if let Some(reason) = self.complaints.new_cause(setback) {
                    tracing::warn!(lease = %self.lock, reason, "the Lease cannot be claimed");
                }
            }
            loss => tracing::warn!(lease = %self.lock, %loss, "leading no longer"),
        }
    }

    /// Releases the Lease, even if we do not know that we hold it: a claim without a response may
    /// have succeeded. If the hub is unreachable, the Lease expires.
    async fn release(&self) {
        let released = timeout(self.timing.renew(), async {
            loop {
                match self.lock.write(Write::Release, Timestamp::now()).await {
                    Err(Setback::Failed(_)) => sleep(self.timing.retry()).await,
                    answer => return answer,
                }
            }
        });
        match released.await {
            Ok(Ok(())) => tracing::info!(lease = %self.lock, "gave the Lease up"),
            Ok(Err(_)) => {} // not ours
            Err(_) => tracing::warn!(lease = %self.lock, "the Lease was not given up, others wait for its end"),
        }
    }
}

// === impl Sign ===

impl<'a> Sign<'a> {
    fn show(leads: &'a watch::Sender<bool>) -> Self {
        leads.send_replace(true);
        Self(leads)
    }
}

impl Drop for Sign<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

#[cfg(test)]
mod tests;
