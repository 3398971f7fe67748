//! Probes every member's health at regular intervals, if the operator turns that on.
//!
//! A probe is `GET /healthz` with the cluster's credential over its own connection, as the Go
//! cluster-gateway's addon-manager does it: it shows what a request would meet, including the dial,
//! and a member that answers closes its circuit. Changes are written to the place of
//! `clustergateways/health`, the Secret's annotations. Probes are spread over the interval, so that
//! a thousand members cause no burst.

mod healthz;
mod reason;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::health::Health;
use api::secret::{HEALTHY_ANNOTATION, HEALTHY_REASON_ANNOTATION};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use self::healthz::Finding;
use self::reason::Reason;
use crate::clusters::{Cluster, Clusters};
use crate::hub::{Collection, Hub, HubFailure};

/// Most concurrent probes, so that members that do not answer do not delay the others.
const AT_A_TIME: usize = 64;
/// A member is reported as unhealthy after this many failed probes in a row, because one lost
/// packet is no news.
const FAILURES: u32 = 2;

/// Most tries when other writers change the Secret in between. After these, the next probe tries
/// again.
const ATTEMPTS: usize = 5;

/// The operator's settings for probes.
#[derive(Debug, Clone)]
pub struct Probing {
    /// Interval of one member's probes; zero means never.
    pub interval: Duration,
    /// Timeout of one probe, including the dial.
    pub timeout: Duration,
}

/// The health in a Secret's annotations.
#[derive(Debug, Default)]
struct RecordedHealth {
    healthy: Option<String>,
    reason: Option<String>,
}

/// Probes forever. Returns at once if probes are off.
pub async fn run(clusters: Arc<Clusters>, probing: Probing, hub: Hub) {
    if probing.interval.is_zero() {
        return;
    }
    let room = Arc::new(Semaphore::new(AT_A_TIME));
    let mut failures = HashMap::new();
    loop {
        let started = Instant::now();
        round(&clusters, &probing, started, &room, &mut failures, &hub).await;
        sleep_until(started + probing.interval).await;
    }
}

/// Probes each registered cluster once.
async fn round(
    clusters: &Clusters,
    probing: &Probing,
    started: Instant,
    room: &Arc<Semaphore>,
    failures: &mut HashMap<ClusterName, u32>,
    hub: &Hub,
) {
    let ready: Vec<Arc<Cluster>> = clusters.snapshot().ready().into_iter().cloned().collect();
    let step = probing.interval / u32::try_from(ready.len().max(1)).unwrap_or(u32::MAX);
    let mut under_way = JoinSet::new();
    let mut found = HashMap::with_capacity(ready.len());
    for (place, cluster) in (0u32..).zip(ready) {
        sleep_until(started + step * place).await;
        let permit = Arc::clone(room).acquire_owned().await.expect("never closed");
        let (hub, timeout) = (hub.clone(), probing.timeout);
        let before = failures.get(cluster.name()).copied().unwrap_or_default();
        under_way.spawn(async move {
            let finding = healthz::ask(&cluster, timeout).await;
            let failed = match &finding {
                Finding::Healthy => 0,
                Finding::Unhealthy { .. } | Finding::NotAsked => before.saturating_add(1),
            };
            keep(&cluster, finding, failed, &hub).await;
            drop(permit);
            (cluster.name().clone(), failed)
        });
        while let Some(Ok((name, failed))) = under_way.try_join_next() {
            found.insert(name, failed);
        }
    }
    while let Some(done) = under_way.join_next().await {
        found.extend(done);
    }
    // Only the clusters of this round, so that removed ones are forgotten.
    *failures = found;
}

/// Writes a change of the health in the Secret.
async fn keep(cluster: &Cluster, finding: Finding, failed: u32, hub: &Hub) {
    let spec = cluster.spec();
    let known = RecordedHealth { healthy: spec.healthy.clone(), reason: spec.healthy_reason.clone() };
    if news(&finding, failed, &known).is_none() {
        return;
    }
    if let Err(failure) = write(hub, &spec.name, &finding, failed).await {
        tracing::warn!(cluster = %spec.name, reason = %failure, "cannot write the health of a cluster, trying again at the next probe");
    }
}

/// The health to write, if any, after `failed` failed probes in a row.
fn news(finding: &Finding, failed: u32, known: &RecordedHealth) -> Option<Health> {
    let said = known.healthy.as_deref();
    let (healthy, healthy_reason) = match finding {
        Finding::Healthy => (true, String::new()),
        Finding::Unhealthy { .. } | Finding::NotAsked if failed < FAILURES && said == Some("true") => return None,
        Finding::Unhealthy { reason, .. } => (false, reason.to_string()),
        // The reason in the Secret is better than none.
        Finding::NotAsked if said == Some("false") => return None,
        Finding::NotAsked => (false, Reason::unknown("too many dials failed").to_string()),
    };
    let is_said = said == Some(if healthy { "true" } else { "false" });
    if is_said && known.reason.as_deref().unwrap_or_default() == healthy_reason {
        return None;
    }
    Some(Health { healthy, healthy_reason })
}

/// Never overwrites a concurrent change of the Secret, but reads it again. Another replica or an
/// earlier probe may have written it since the gateway's snapshot, so the current Secret decides
/// whether there is a change.
async fn write(hub: &Hub, cluster: &ClusterName, finding: &Finding, failed: u32) -> Result<(), HubFailure> {
    let mut attempts = 1;
    loop {
        let secret = hub.get(Collection::Secrets, cluster.as_str(), "").await?;
        let Some(health) = news(finding, failed, &RecordedHealth::of(&secret)) else { return Ok(()) };
        let Some(annotated) = health.annotate(&secret) else { return Ok(()) };
        match hub.update_secret(cluster.as_str(), "", annotated.into()).await {
            Err(failure) if failure.code() == Some(409) && attempts < ATTEMPTS => attempts += 1,
            done => {
                done?;
                let detail = if let Finding::Unhealthy { detail, .. } = finding { detail.as_str() } else { "" };
                let Health { healthy, healthy_reason: reason } = health;
                tracing::info!(%cluster, healthy, reason, detail, "health changed");
                return Ok(());
            }
        }
    }
}

// === impl RecordedHealth ===

impl RecordedHealth {
    /// The health in a Secret; empty if it cannot be read.
    fn of(secret: &[u8]) -> Self {
        let secret: serde_json::Value = serde_json::from_slice(secret).unwrap_or_default();
        let annotation = |key: &str| secret["metadata"]["annotations"][key].as_str().map(str::to_owned);
        Self { healthy: annotation(HEALTHY_ANNOTATION), reason: annotation(HEALTHY_REASON_ANNOTATION) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(annotations: &Value) -> RecordedHealth {
        RecordedHealth::of(json!({"metadata": {"annotations": annotations}}).to_string().as_bytes())
    }

    fn failure() -> Finding {
        Finding::Unhealthy { reason: Reason::ConnectionTimeout, detail: String::new() }
    }

    #[test]
    fn one_failure_is_news_only_where_nothing_good_was_said() {
        let well = said(&json!({HEALTHY_ANNOTATION: "true", HEALTHY_REASON_ANNOTATION: ""}));
        assert_eq!(news(&failure(), 1, &well), None);
        let ill = news(&failure(), FAILURES, &well).expect("news");
        assert_eq!((ill.healthy, &*ill.healthy_reason), (false, "ConnectionTimeout"));
        for silent in [said(&Value::Null), RecordedHealth::of(b"no JSON")] {
            assert_eq!(news(&failure(), 1, &silent), Some(ill.clone()));
            assert!(news(&Finding::Healthy, 0, &silent).is_some_and(|health| health.healthy));
        }
    }

    #[test]
    fn what_is_said_already_is_no_news() {
        let ill = |reason: &str| said(&json!({HEALTHY_ANNOTATION: "false", HEALTHY_REASON_ANNOTATION: reason}));
        assert_eq!(news(&failure(), 7, &ill("ConnectionTimeout")), None);
        assert!(news(&failure(), 7, &ill("another")).is_some());
        assert_eq!(news(&Finding::NotAsked, 7, &ill("another")), None, "better than the want of a reason");
        assert_eq!(news(&Finding::Healthy, 0, &said(&json!({HEALTHY_ANNOTATION: "true"}))), None);
    }
}
