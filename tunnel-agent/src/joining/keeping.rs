//! The duties of an agent with a certificate: it renews its Lease, reports the status, and gets the
//! next certificate before this one expires. Each duty runs independently: a call that hangs delays
//! only its own kind.

mod announcing;
mod filling;
mod lease;
mod renewal;
mod telling;
mod troubles;

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use api::hub_status::HubStatus;
use hub::{Cause, Requests};
use net::backoff::Backoff;
use net::random::sooner;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use self::announcing::Announcing;
use self::filling::Filling;
use self::troubles::{Troubles, since_when};
use super::certificate::Certificate;
use super::dialer::HubWay;
use super::standing::Standing;
use super::state::KUBECONFIG;
use super::{JoinError, Joined, Joining, cluster};

/// Interval while the hub has not accepted the cluster.
const WAITING: Duration = Duration::from_secs(5);
/// Between two steps of a renewal, and after a failed call.
const STEP: Backoff = Backoff { chance: 0.3, ..Backoff::doubling(Duration::from_secs(2), Duration::from_mins(1)) };
/// The clock may be set, so it is read at least this often.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// Interval of the checks whether the certificate still counts, and whether the state is saved.
const LOOK: Duration = Duration::from_secs(5);

/// Why the cluster must join again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The certificate has expired.
    Expired,
    /// The bootstrap kubeconfig names another hub.
    OtherHub,
    /// The hub does not know the certificate, and has said so for a long time.
    Unbelieved,
}

/// See the module.
pub struct Keeping<'a> {
    joining: &'a Joining,
    member: Option<&'a Requests>,
    url: String,
    joined: Mutex<Joined>,
    /// Held while the state's files, and the client that reads them, are made: the client of a
    /// renewal and the client of a change of the way to the hub must not overwrite each other.
    changing: tokio::sync::Mutex<()>,
    /// The `ManagedCluster` as last read, while it is accepted.
    cluster: watch::Sender<Option<Value>>,
    /// The cluster must be read again earlier than scheduled.
    soon: Notify,
}

// === impl Over ===

impl Over {
    /// The reason as metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::OtherHub => "other_hub",
            Self::Unbelieved => "unauthorized",
        }
    }
}

// === impl Keeping ===

impl<'a> Keeping<'a> {
    pub fn new(joining: &'a Joining, member: Option<&'a Requests>, joined: Joined) -> Self {
        let url = joined.way.url().to_owned();
        let (joined, cluster) = (Mutex::new(joined), watch::Sender::new(None));
        let changing = tokio::sync::Mutex::default();
        Self { joining, member, url, joined, changing, cluster, soon: Notify::new() }
    }

    /// Runs until the cluster must join again. Returns the reason and the last state.
    pub async fn run(self) -> (Over, Joined) {
        let over = tokio::select! {
            over = self.over() => over,
            over = self.look() => over,
            never = self.beat() => match never {},
            never = self.tell() => match never {},
            never = self.renew() => match never {},
            never = self.save() => match never {},
            never = self.fill() => match never {},
        };
        (over, self.joined.into_inner())
    }

    /// The hub, with the current certificate.
    fn hub(&self) -> Requests {
        self.joined.lock().hub.clone()
    }

    fn certificate(&self) -> Certificate {
        self.joined.lock().certificate.clone()
    }

    async fn over(&self) -> Over {
        let mut troubles = Troubles::default();
        loop {
            if self.certificate().is_over_at(SystemTime::now()) {
                return Over::Expired;
            }
            let mut wait = LOOK;
            if let Some(meant) = self.joining.meant().await {
                if meant.url() != self.url {
                    return Over::OtherHub;
                }
                match self.turn(meant).await {
                    Ok(()) => troubles.over(),
                    Err(error) => wait = troubles.failed(&error),
                }
            }
            sleep(wait).await;
        }
    }

    /// Uses the bootstrap kubeconfig's settings for the hub: its CA, name and proxy.
    async fn turn(&self, meant: HubWay) -> Result<(), JoinError> {
        let _changing = self.changing.lock().await;
        if self.joined.lock().way == meant {
            return Ok(());
        }
        self.joining.state.write_kubeconfig(&meant)?;
        let hub = self.joining.requests(self.joining.state.path(KUBECONFIG)).await?;
        tracing::info!(
            hub = meant.url(),
            "the bootstrap kubeconfig changed (spelling of the URL, CA, server name or proxy of the hub): using the new settings"
        );
        let mut joined = self.joined.lock();
        (joined.hub, joined.way) = (hub, meant);
        drop(joined);
        self.soon.notify_one();
        Ok(())
    }

    /// Checks repeatedly whether the cluster is accepted. Completes when the hub has not known the
    /// certificate for a long time, because it was restored, or has another CA.
    async fn look(&self) -> Over {
        let path = cluster::path(&self.joining.cluster);
        let (mut troubles, mut unbelieved, mut announcing) = (Troubles::default(), None, Announcing::default());
        loop {
            let answer = self.hub().get(&path).await;
            announcing.heard(self.joining, &answer).await;
            unbelieved = since_when(&answer, unbelieved, Instant::now());
            if unbelieved.is_some_and(|since| since.elapsed() >= self.joining.timing.unbelieved) {
                return Over::Unbelieved;
            }
            let wait = match answer {
                Ok(cluster) if cluster::is_accepted(&cluster) => {
                    troubles.over();
                    self.joining.say(Standing::Accepted);
                    let wait = cluster::look(&cluster);
                    self.cluster.send_replace(Some(cluster));
                    sooner(wait, lease::JITTER)
                }
                // The cluster may read itself only from the first acceptance on.
                Ok(_) | Err(Cause::Status(HubStatus { code: 403 | 404, .. })) => {
                    troubles.over();
                    self.cluster.send_replace(None);
                    self.joining.say(Standing::Denied);
                    WAITING
                }
                Err(error) => {
                    self.joining.say(Standing::Silent);
                    troubles.failed(&JoinError::Hub { what: "reading the ManagedCluster", error })
                }
            };
            let _ = timeout(wait.min(self.joining.timing.look), self.soon.notified()).await;
        }
    }

    /// Saves the state in the Secret, which outlives the directory.
    async fn save(&self) -> Infallible {
        let mut troubles = Troubles::default();
        loop {
            let wait = match self.joining.save().await {
                Ok(()) => {
                    troubles.over();
                    LOOK
                }
                Err(error) => troubles.failed(&error),
            };
            sleep(wait).await;
        }
    }

    async fn fill(&self) -> Infallible {
        match (self.member, &self.joining.config.credential) {
            (Some(member), Some(account)) => Filling::new(self, member, account).run().await,
            _ => std::future::pending().await,
        }
    }

    /// The cluster, once it is accepted.
    async fn accepted(&self, cluster: &mut watch::Receiver<Option<Value>>) -> Value {
        loop {
            // The sender is ours, and lives as long as this.
            if let Ok(accepted) = cluster.wait_for(Option::is_some).await
                && let Some(accepted) = accepted.as_ref()
            {
                return accepted.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use net::words::Causes;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_hubs_own_word_ends_its_disbelief() {
        let answer = |code: u16| Err(Cause::Status(HubStatus { code, ..HubStatus::default() }));
        let (first, later) = (Instant::now(), Instant::now() + LOOK);
        assert_eq!(since_when(&answer(401), None, first), Some(first));
        assert_eq!(since_when(&answer(401), Some(first), later), Some(first));
        for silent in [answer(503), Err(Cause::Timeout(LOOK)), Err(Cause::Unreachable(Causes::of("")))] {
            assert_eq!(since_when(&silent, Some(first), later), Some(first));
            assert_eq!(since_when(&silent, None, later), None);
        }
        for known in [answer(403), answer(404), answer(429), Ok(Value::Null)] {
            assert_eq!(since_when(&known, Some(first), later), None);
        }
    }
}
