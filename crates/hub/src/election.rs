//! One leader among replicas, elected by a `coordination.k8s.io/v1` Lease. Others may contend for
//! the same Lease by client-go's `tools/leaderelection`, whose rules these are:
//!
//! - A holder that changes nothing in its Lease for `leaseDurationSeconds` is gone. Each contender
//!   measures that time on its own clock, from when it *saw* the last change: clocks are never
//!   compared.
//! - A takeover names the version of the Lease that it replaces, so that one of many succeeds.
//! - A holder that cannot renew stops in time, before others may begin.
//!
//! One thing is done otherwise. client-go sends one renewal at a time, and counts its deadline from
//! the answer to the one before. A slow API server may have carried that out long before it
//! answered: others count from then, and the leader leads beyond the end of its Lease. Counting
//! from when a renewal was sent is safe, but then renewals of 9 s, one after the other, are too
//! slow for a Lease of 15 s. Here each counts from when it was *sent*, and the next one goes out a
//! retry period later, answered or not. So a renewal depends on the holder of the Lease (a JSON
//! patch with a `test`), and not on its version, which only the answer to the one before has.
//!
//! Who waits follows the Lease by a watch, where client-go looks at it each retry period: a renewal
//! is seen when it is written, so that a leader which is gone is replaced when its Lease has passed
//! since the last of them, and one that gives the Lease up at once.
//!
//! Needs `get`, `create`, `patch` and `watch` of the Lease. Without `watch`, it is looked at as
//! client-go does.

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
    /// Of claims.
    complaints: Complaints,
}

/// Says that we lead, until dropped.
struct Sign<'a>(&'a watch::Sender<bool>);

// === impl Election ===

impl Election {
    /// A contender for the Lease `name` in `namespace`, which is created when it is missing. Asks
    /// nothing yet.
    ///
    /// `client` should not try again by itself, as those of [`crate::client`] do not: what a hidden
    /// retry gets counts from when the first try was sent.
    pub fn new(client: Client, namespace: &str, name: &str, identity: Identity, timing: Timing) -> Self {
        Self {
            candidacy: Candidacy::new(identity.clone(), timing),
            lock: Lock::new(client, namespace, name, identity, timing),
            timing,
            leads: watch::Sender::new(false),
            complaints: Complaints::default(),
        }
    }

    /// Whether we lead: for a metric, and for people. What is written because of it asks
    /// [`Leading::is_held`], which does not depend on anything being woken in time.
    pub fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Contends until `stop`, and runs what `work` makes whenever we lead, with a [`Leading`] of
    /// that term.
    ///
    /// Work whose term ends is dropped, and there may be more of it in a later term. It shares the
    /// task of this future: what it holds up, it loses. Tasks that it spawned are its own to end;
    /// they see the end of the term by [`Leading::is_held`].
    ///
    /// Returns what work returned that came to its end by itself, or `None` after `stop`. In both
    /// cases the work is gone by then, and another may take the Lease over at once. Work that is to
    /// finish before that watches for a signal of its own, such as the soft one of
    /// [`net::drain::Drain`], and returns; the hard one is `stop`.
    ///
    /// Dropping this future does not give up the Lease: others wait for its end. A program that
    /// contends again does so as another [`Identity`].
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

    /// One term, with its work: gone when this returns.
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

    /// Gives the Lease up, whether or not we know that it is ours: an unanswered claim may make it
    /// so. Without the hub it ends by itself.
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
            Ok(Err(_)) => {} // it is another's
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
