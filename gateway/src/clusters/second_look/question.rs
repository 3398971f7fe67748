//! One question to the hub: is there a Secret of this name that is a cluster?

use std::time::Duration;

use api::access::Verb;
use api::cluster_name::ClusterName;
use api::hub_object::{self, HubMeta};
use api::secret::CREDENTIAL_TYPE_LABEL;
use auth::ReviewProgress;
use net::throttle::LogThrottle;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::hub::{Cause, Collection, Hub, HubFailure};
use crate::metrics::SecondLooks;

/// For one question, waiting for its turn included.
pub(super) const WITHIN: Duration = Duration::from_secs(3);
/// How long an answer counts.
pub(super) const KEPT: Duration = Duration::from_secs(1);
/// Questions at the hub at a time: a quarter of the calls there may be, so that readers of
/// `clustergateways` find places.
pub(super) const AT_A_TIME: usize = 8;
/// Questions begun in a second.
pub(super) const PER_SECOND: u32 = 100;

/// What the hub said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has the Secret, which was last changed at `version`.
    Found { version: u64 },
    /// It has none, or one that is no cluster.
    Absent,
    /// The gateway may not ask.
    Forbidden,
    /// It said nothing of use.
    Failed,
    /// It was not asked: there are too many questions.
    Limited,
}

pub(super) struct Questions {
    hub: Hub,
    permits: Semaphore,
    begun: Mutex<RateWindow>,
    metrics: SecondLooks,
    throttle: LogThrottle,
}

/// Questions of the current second.
#[derive(Default)]
struct RateWindow {
    since: Option<Instant>,
    count: u32,
}

/// A Secret, as far as it matters. Its credential is not even looked at.
#[derive(Deserialize)]
struct Labelled {
    metadata: HubMeta,
}

// === impl Answer ===

impl Answer {
    fn of(secret: &[u8]) -> Result<Self, hub_object::Unreadable> {
        let Labelled { metadata } = hub_object::parse(secret)?;
        if !metadata.labels.contains_key(CREDENTIAL_TYPE_LABEL) {
            return Ok(Self::Absent);
        }
        // Versions are numbers to be compared (KEP-5504); one that is none is never reached, and
        // the cluster itself has to come.
        Ok(Self::Found { version: metadata.resource_version.parse().unwrap_or(u64::MAX) })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Found { .. } => "found",
            Self::Absent => "absent",
            Self::Forbidden => "forbidden",
            Self::Failed => "failed",
            Self::Limited => "limited",
        }
    }
}

// === impl Questions ===

impl Questions {
    pub(super) fn new(hub: Hub, metrics: SecondLooks) -> Self {
        let permits = Semaphore::new(AT_A_TIME);
        Self { hub, permits, begun: Mutex::default(), metrics, throttle: LogThrottle::default() }
    }

    /// The answer, and how long it may be kept. `progress` shows when the hub has the question.
    pub(super) async fn ask(&self, name: &ClusterName, progress: ReviewProgress) -> (Answer, Duration) {
        if !self.begun.lock().one_more() {
            return (self.refused(), Duration::ZERO);
        }
        let answer = timeout(WITHIN, self.get(name, &progress)).await.unwrap_or_else(|_| {
            self.complain(name, "no answer in time", None);
            Answer::Failed
        });
        self.metrics.count(answer.name());
        (answer, KEPT)
    }

    /// For a name that there is no room to ask about.
    pub(super) fn refused(&self) -> Answer {
        self.metrics.count(Answer::Limited.name());
        Answer::Limited
    }

    /// A request has waited in vain for a cluster that is there.
    pub(super) fn late(&self, name: &ClusterName, waited: Duration) {
        self.metrics.count("late");
        if let Some(suppressed) = self.throttle.due() {
            let next_step = "see the log lines about the watch of cluster Secrets";
            tracing::warn!(
                cluster = %name, ?waited, next_step, suppressed,
                "the hub has the cluster's Secret, but the watch has not delivered it"
            );
        }
    }

    async fn get(&self, name: &ClusterName, progress: &ReviewProgress) -> Answer {
        // Never closed.
        let _permit = self.permits.acquire().await;
        let _at_hub = progress.enter_hub();
        let answer = match self.hub.get(Collection::Secrets, name.as_str(), "").await {
            Ok(secret) => Answer::of(&secret).map_err(|_| unreadable()),
            Err(failure) if failure.code() == Some(404) => Ok(Answer::Absent),
            Err(failure) => Err(failure),
        };
        answer.unwrap_or_else(|failure| self.failed(name, &failure))
    }

    fn failed(&self, name: &ClusterName, failure: &HubFailure) -> Answer {
        let forbidden = failure.code() == Some(403);
        let grant = "grant the gateway get on secrets in the namespace of the cluster Secrets";
        self.complain(name, &failure.to_string(), forbidden.then_some(grant));
        if forbidden { Answer::Forbidden } else { Answer::Failed }
    }

    fn complain(&self, name: &ClusterName, reason: &str, next_step: Option<&str>) {
        if let Some(suppressed) = self.throttle.due() {
            tracing::warn!(
                cluster = %name, reason, next_step, suppressed,
                "cannot ask the hub whether the cluster was just registered"
            );
        }
    }
}

fn unreadable() -> HubFailure {
    HubFailure { verb: Verb::Get, collection: Collection::Secrets, cause: Cause::Unreadable }
}

// === impl RateWindow ===

impl RateWindow {
    /// Whether another question may begin now, and counts it.
    fn one_more(&mut self) -> bool {
        let now = Instant::now();
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= PER_SECOND
    }
}
