//! Asks the hub whether it has a cluster's Secret with a given name.

use std::time::Duration;

use api::access::Verb;
use api::cluster_name::ClusterName;
use api::hub_object::{self, HubMeta};
use api::secret::CREDENTIAL_TYPE_LABEL;
use auth::ReviewProgress;
use net::rate::Window;
use net::throttle::LogThrottle;
use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

use crate::hub::{Cause, Collection, Hub, HubFailure};
use crate::metrics::SecondLooks;

/// Timeout of one question, including the wait for a permit.
pub(super) const WITHIN: Duration = Duration::from_secs(3);
/// How long an answer is valid.
pub(super) const KEPT: Duration = Duration::from_secs(1);
/// Concurrent questions: a quarter of the allowed calls to the hub, so that readers of
/// `clustergateways` find permits.
pub(super) const AT_A_TIME: usize = 8;
/// Most questions begun in a second.
pub(super) const PER_SECOND: u32 = 100;

/// The hub's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// It has the Secret, last changed at `version`.
    Found { version: u64 },
    /// It has no such Secret, or one that is no cluster.
    Absent,
    /// The gateway may not ask.
    Forbidden,
    /// The hub failed, or its answer was useless.
    Failed,
    /// The hub was not asked, because there are too many questions.
    Limited,
}

pub(super) struct Questions {
    hub: Hub,
    permits: Semaphore,
    /// In the current second.
    begun: Mutex<Window<Instant>>,
    metrics: SecondLooks,
    throttle: LogThrottle,
}

/// The metadata of a Secret. Its data are not parsed.
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
        // Versions are comparable numbers (KEP-5504). A version that is no number is never reached,
        // so then only the cluster itself ends the wait.
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

    /// Returns the answer, and how long it may be cached. `progress` shows when the hub has the
    /// question.
    pub(super) async fn ask(&self, name: &ClusterName, progress: ReviewProgress) -> (Answer, Duration) {
        if self.begun.lock().take(Instant::now(), PER_SECOND, Duration::from_secs(1)).is_err() {
            return (self.refused(), Duration::ZERO);
        }
        let answer = timeout(WITHIN, self.get(name, &progress)).await.unwrap_or_else(|_| {
            self.complain(name, "no answer in time", None);
            Answer::Failed
        });
        self.metrics.count(answer.name());
        (answer, KEPT)
    }

    /// The answer for a name when there is no room for its question.
    pub(super) fn refused(&self) -> Answer {
        self.metrics.count(Answer::Limited.name());
        Answer::Limited
    }

    /// A request waited in vain for a registered cluster.
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
        // The semaphore is never closed.
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
