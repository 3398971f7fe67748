//! Supervises a link: rechecks its credential regularly, and reports its end.

use std::time::Duration;

use net::random::sooner;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tunnel::{Link, LinkError};

use super::claim::Claim;
use super::doubts::Doubt;
use super::judge::{Judge, Refused};
use crate::registry::{Ended, Linked, Metrics, Named};

/// How long a link continues while the hub does not answer reviews of it. An outage of the hub must
/// not cut off members, and an endless one must not keep a stolen credential alive.
const UNREVIEWED: Duration = Duration::from_mins(10);
/// Wait before the next review after the hub gave no answer and a right may have changed.
const UNANSWERED: Duration = Duration::from_secs(2);
/// Share of the interval by which rechecks may come sooner, so that agents that linked together are
/// not rechecked together forever.
const JITTER: f64 = 0.2;

pub struct LinkSupervisor<'a> {
    pub judge: &'a Judge,
    pub metrics: &'a Metrics,
    /// Interval of rechecks of the claim.
    pub recheck: Duration,
    /// Cancelled when links must end in order.
    pub leave: &'a CancellationToken,
    pub linked: Linked,
    pub claim: Claim,
    /// Notifies when the cluster's rights may have changed.
    pub doubt: Doubt,
}

/// Closes the link when dropped, also when this task is aborted.
struct Closing(Option<Link>);

// === impl LinkSupervisor ===

impl LinkSupervisor<'_> {
    pub async fn run(self) {
        let started = Instant::now();
        self.log_linked();
        let mut closing = Closing(Some(self.linked.link().clone()));
        let (ended, why) = tokio::select! {
            biased;
            (ended, why) = self.ended() => (ended, why),
            (ended, why) = self.doubted() => (ended, why),
            () = self.leave.cancelled() => {
                closing.spared();
                (Ended::Drained, String::new())
            }
        };
        drop(closing);
        self.metrics.ended(ended);
        self.log_ended(ended, &why, started);
        let link = self.linked.link().clone();
        drop(self.linked);
        link.finished().await;
    }

    /// Completes when the link has ended. Notifies the registry's watchers once it accepts no new
    /// streams.
    async fn ended(&self) -> (Ended, String) {
        let link = self.linked.link();
        let (said_so, error) = tokio::select! {
            biased;
            // A lost link never reports that it is leaving.
            error = link.ended() => (false, error),
            () = link.leaving() => {
                self.linked.withdrawn();
                let (id, streams) = (self.linked.id(), self.linked.streams());
                tracing::info!(link = %self.linked.named(), id, streams, "link accepts no new streams");
                (true, link.ended().await)
            }
        };
        match error {
            LinkError::Closed if said_so => (Ended::Left, String::new()),
            LinkError::Closed => (Ended::Lost, "closed without notice".to_owned()),
            error @ LinkError::Flood => (Ended::Frames, error.to_string()),
            error => (Ended::Lost, error.to_string()),
        }
    }

    /// Completes when the claim is no longer valid.
    async fn doubted(&self) -> (Ended, String) {
        let mut sure = Instant::now();
        let mut changes = self.doubt.changes();
        // Time of the change for which the hub has given no review yet.
        let mut since = None;
        loop {
            let wait = since.map_or(self.recheck, |_| UNANSWERED.min(self.recheck));
            tokio::select! {
                () = sleep(sooner(wait, JITTER)) => {}
                at = changes.next() => since = Some(at),
            }
            self.metrics.rechecked(since.is_some());
            if let Some(rtt) = self.linked.link().rtt() {
                self.metrics.rtt(rtt);
            }
            let asked = Instant::now();
            if let Some(doubt) = judge_again(self.judge, &self.claim, self.linked.named(), since, &mut sure).await {
                return doubt;
            }
            since = since.filter(|_| sure < asked);
        }
    }

    fn log_linked(&self) {
        let (named, link) = (self.linked.named(), self.linked.link());
        tracing::info!(
            cluster = %named.cluster,
            agent = %named.agent,
            number = named.number,
            id = self.linked.id(),
            peer = %named.peer,
            credential = &*named.credential.0,
            version = %named.version,
            rtt = ?link.rtt(),
            "agent linked"
        );
    }

    fn log_ended(&self, ended: Ended, why: &str, started: Instant) {
        let named = self.linked.named();
        let (streams, seconds) = (self.linked.streams(), started.elapsed().as_secs());
        let (id, peer, reason) = (self.linked.id(), named.peer, ended.as_str());
        match ended {
            Ended::Left | Ended::Drained => {
                tracing::info!(link = %named, id, %peer, reason, seconds, "link ended");
            }
            Ended::Lost | Ended::Frames | Ended::Revoked | Ended::Unreviewed => {
                tracing::warn!(link = %named, id, %peer, reason, why, seconds, streams, "link ended, its streams are reset");
            }
        }
    }
}

/// Why the link must end, if it must. `sure` is the last time at which the claim was known to be
/// valid.
async fn judge_again(
    judge: &Judge,
    claim: &Claim,
    named: &Named,
    since: Option<Instant>,
    sure: &mut Instant,
) -> Option<(Ended, String)> {
    match judge.judge(claim, since).await {
        Ok(credential) if credential == named.credential => {
            *sure = Instant::now();
            None
        }
        Ok(other) => Some((Ended::Revoked, format!("the credential is now of \"{}\"", other.0))),
        Err(refused) if refused.is_verdict() => Some((Ended::Revoked, refused.describe())),
        Err(refused) if sure.elapsed() >= UNREVIEWED => Some((Ended::Unreviewed, refused.describe())),
        Err(refused) => {
            tracing::debug!(link = %named, why = refused.why, "not reviewed again: the hub cannot be reached");
            None
        }
    }
}

// === impl Closing ===

impl Closing {
    /// Lets the link end by itself, with its last stream.
    fn spared(&mut self) {
        self.0 = None;
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(link) = &self.0 {
            link.close();
        }
    }
}

// === impl Refused ===

impl Refused {
    /// The review took too long.
    pub fn late(after: Duration) -> Self {
        let mut refused = super::judge::not_asked(format!("no answer within {after:?}"));
        refused.retry_after = refused.retry_after.map(|wait| wait + wait);
        refused
    }

    fn describe(&self) -> String {
        if self.why.is_empty() { self.message.clone() } else { format!("{} ({})", self.message, self.why) }
    }
}

#[cfg(test)]
mod tests;
