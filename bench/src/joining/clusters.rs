//! `ManagedClusters` and their Leases, as their agents would write them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Method, Request};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};

use super::GROUP;
use crate::caller::Caller;

const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// For rights and Leases to be there: the first to wait may be the last of thousands.
const LIMIT: Duration = Duration::from_mins(30);
const PAUSE: Duration = Duration::from_millis(250);
/// The pause grows to this part of the time that the agent has waited: hundreds that ask four times
/// a second would be most of the hub's requests.
const PART: u32 = 8;
/// As a klusterlet's reflectors wait at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Tries of a report while the controllers write the same status.
const TRIES: usize = 5;

pub fn collection() -> String {
    format!("/apis/{GROUP}/v1/managedclusters")
}

pub fn path(cluster: &str) -> String {
    format!("{}/{cluster}", collection())
}

fn lease(cluster: &str) -> String {
    format!("/apis/coordination.k8s.io/v1/namespaces/{cluster}/leases/managed-cluster-lease")
}

/// A cluster that renews its Lease each so many seconds.
pub fn managed(cluster: &str, is_accepted: bool, seconds: u32) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster", "metadata": {"name": cluster},
        "spec": {"hubAcceptsClient": is_accepted, "leaseDurationSeconds": seconds}})
}

/// A renewal at `time`, by a caller that may patch Leases.
pub fn renewal(caller: &Caller, cluster: &str, time: OffsetDateTime) -> Result<Request<Bytes>> {
    caller.merge(&lease(cluster), &json!({"spec": {"renewTime": micro(time)}}))
}

/// Formats a time as a Kubernetes `MicroTime`.
fn micro(time: OffsetDateTime) -> String {
    let (date, month) = (time.date(), u8::from(time.month()));
    let (hour, minute, second) = time.time().as_hms();
    let (year, day, micro) = (date.year(), date.day(), time.microsecond());
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micro:06}Z")
}

/// Whether the cluster is available, as its condition has it.
pub async fn available(caller: &Caller, connection: &SendRequest<Bytes>, cluster: &str) -> Result<Option<String>> {
    let object = get(caller, connection, &path(cluster)).await?;
    let conditions = object["status"]["conditions"].as_array();
    let found = conditions.and_then(|all| all.iter().find(|condition| condition["type"] == AVAILABLE));
    Ok(found.and_then(|condition| condition["status"].as_str()).map(str::to_owned))
}

async fn get(caller: &Caller, connection: &SendRequest<Bytes>, path: &str) -> Result<Value> {
    Ok(serde_json::from_slice(&caller.ask(connection, caller.get(path)?).await?)?)
}

/// Renews as agents do, which read the Lease first.
async fn renew(caller: &Caller, connection: &SendRequest<Bytes>, cluster: &str, time: OffsetDateTime) -> Result<()> {
    let path = lease(cluster);
    let mut lease = get(caller, connection, &path).await?;
    lease["spec"]["renewTime"] = micro(time).into();
    caller.ask(connection, caller.json(Method::PUT, &path, &lease)?).await.map(drop)
}

/// Renews the Lease, and reports the cluster as available, as soon as `caller` may.
pub async fn begin(caller: &Caller, connection: &SendRequest<Bytes>, cluster: &str) -> Result<()> {
    let begin = Instant::now();
    while let Err(refusal) = greet(caller, connection, cluster, OffsetDateTime::now_utc()).await {
        ensure!(begin.elapsed() < LIMIT, "{cluster}: {refusal:#}");
        sleep(PAUSE.max(begin.elapsed() / PART).min(LONGEST_PAUSE)).await;
    }
    Ok(())
}

/// The same once, with a renewal at `time`.
pub async fn greet(
    caller: &Caller,
    connection: &SendRequest<Bytes>,
    cluster: &str,
    time: OffsetDateTime,
) -> Result<()> {
    renew(caller, connection, cluster, time).await.context("its Lease")?;
    for _ in 1..TRIES {
        match report(caller, connection, cluster).await {
            Err(refusal) if format!("{refusal:#}").contains("409 Conflict") => {}
            done => return done,
        }
    }
    report(caller, connection, cluster).await
}

/// Says that the cluster is available.
async fn report(caller: &Caller, connection: &SendRequest<Bytes>, cluster: &str) -> Result<()> {
    let object = get(caller, connection, &path(cluster)).await.context("its ManagedCluster")?;
    let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != AVAILABLE);
    conditions.push(json!({"type": AVAILABLE, "status": "True", "reason": "ManagedClusterAvailable",
        "message": "Managed cluster is available", "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    let version = &object["metadata"]["resourceVersion"];
    let change = json!({"metadata": {"resourceVersion": version}, "status": {"conditions": conditions}});
    caller.ask(connection, caller.merge(&format!("{}/status", path(cluster)), &change)?).await.context("its status")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits() {
        let time = OffsetDateTime::from_unix_timestamp_nanos(1_800_000_000_000_007_000).unwrap();
        assert_eq!(micro(time), "2027-01-15T08:00:00.000007Z");
    }
}
