//! What an agent with a certificate owes its hub: a renewed Lease, a reported status, and the next
//! certificate before this one ends. Each goes on by itself: a call that hangs holds up its own
//! kind and no other.

mod announcing;
mod filling;
mod lease;
mod renewal;
mod telling;

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use hub::{RequestError, Requests};
use net::backoff::Backoff;
use net::follow::Complaints;
use net::random::sooner;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use self::announcing::Announcing;
use self::filling::Filling;
use super::certificate::Certificate;
use super::standing::Standing;
use super::state::KUBECONFIG;
use super::way::HubWay;
use super::{JoinError, Joined, Joining, cluster};

/// While the hub has not accepted the cluster.
const WAITING: Duration = Duration::from_secs(5);
/// Between two steps of a renewal, and after a call that failed.
const STEP: Backoff = Backoff { chance: 0.3, ..Backoff::doubling(Duration::from_secs(2), Duration::from_mins(1)) };
/// For the clock to be looked at: it may have been set.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// Between two looks at whether the certificate counts, and whether the state was saved.
const LOOK: Duration = Duration::from_secs(5);

/// Why the cluster has to join anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// The certificate has expired.
    Expired,
    /// The bootstrap kubeconfig names another hub.
    OtherHub,
    /// The hub does not know the certificate, and has said so for long.
    Unbelieved,
}

/// See the module.
pub struct Keeping<'a> {
    joining: &'a Joining,
    member: Option<&'a Requests>,
    url: String,
    joined: Mutex<Joined>,
    /// Held while files of the state and the client that reads them are made: the client of a
    /// renewal and that of another way to the hub must not take each other's place.
    changing: tokio::sync::Mutex<()>,
    /// The `ManagedCluster` as it was read last, while it is accepted.
    cluster: watch::Sender<Option<Value>>,
    /// The cluster is to be read again before it is time.
    soon: Notify,
}

/// What one kind of call complains of, logged once per cause.
#[derive(Default)]
struct Troubles {
    complaints: Complaints,
    failures: u32,
}

// === impl Over ===

impl Over {
    /// As metrics name it.
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

    /// Until the cluster has to join anew. Returns with what it had.
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

    /// The hub, by the certificate there is at the moment.
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

    /// Goes to the hub as the bootstrap kubeconfig says: with its CA, name and proxy.
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

    /// Looks again and again whether the cluster is accepted. Completes when the hub has not known
    /// the certificate for long: it was restored, or has another CA.
    async fn look(&self) -> Over {
        let path = cluster::path(&self.joining.cluster);
        let (mut troubles, mut unbelieved, mut announcing) = (Troubles::default(), None, Announcing::default());
        loop {
            let answer = self.hub().get(&path).await;
            announcing.heard(self.joining, &answer).await;
            unbelieved = since_when(&answer, unbelieved, Instant::now());
            if unbelieved.is_some_and(|since| since.elapsed() >= self.joining.pace.unbelieved) {
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
                // It may look at itself from the first acceptance on.
                Ok(_) | Err(RequestError::Answer { code: 403 | 404, .. }) => {
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
            let _ = timeout(wait.min(self.joining.pace.look), self.soon.notified()).await;
        }
    }

    /// Keeps the state where it outlives the directory.
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
            // The sender is ours: it is there for as long as this is.
            if let Ok(accepted) = cluster.wait_for(Option::is_some).await
                && let Some(accepted) = accepted.as_ref()
            {
                return accepted.clone();
            }
        }
    }
}

/// Since when the hub has not known the certificate, after this answer. Silence says nothing.
fn since_when(answer: &Result<Value, RequestError>, since: Option<Instant>, now: Instant) -> Option<Instant> {
    match answer {
        Err(RequestError::Answer { code: 401, .. }) => since.or(Some(now)),
        Ok(_) | Err(RequestError::Answer { code: 400..500, .. }) => None,
        Err(_) => since,
    }
}

// === impl Troubles ===

impl Troubles {
    /// Tells of an error; returns after how long to try again.
    fn failed(&mut self, error: &JoinError) -> Duration {
        if let Some(reason) = self.complaints.new_cause(error) {
            tracing::warn!(reason, "not done, trying again");
        }
        self.failures += 1;
        STEP.wait(self.failures - 1)
    }

    /// It works.
    fn over(&mut self) {
        self.complaints.clear();
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_the_hubs_own_word_ends_its_disbelief() {
        let answer = |code: u16| Err(RequestError::Answer { code, message: String::new() });
        let (first, later) = (Instant::now(), Instant::now() + LOOK);
        assert_eq!(since_when(&answer(401), None, first), Some(first));
        assert_eq!(since_when(&answer(401), Some(first), later), Some(first));
        for silent in [answer(503), Err(RequestError::Timeout), Err(RequestError::Unreachable(String::new()))] {
            assert_eq!(since_when(&silent, Some(first), later), Some(first));
            assert_eq!(since_when(&silent, None, later), None);
        }
        for known in [answer(403), answer(404), answer(429), Ok(Value::Null)] {
            assert_eq!(since_when(&known, Some(first), later), None);
        }
    }
}
