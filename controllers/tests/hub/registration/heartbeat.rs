//! Agents that stop renewing their Lease.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::{pace, wait};
use serde_json::json;
use tokio::time::Instant;

use super::{Registration, accept, condition, get, managed, wait_condition};
use crate::fixture::{SOON, apply, print};

const AVAILABLE: &str = "ManagedClusterConditionAvailable";
const SECONDS: u64 = 1;
/// Time from the agent's report that it is back until its taint is gone.
const CLEAN: Duration = Duration::from_secs(2);

pub fn silence(testbed: &Testbed) -> Result<()> {
    let _registration = Registration::start(testbed, "beat-place")?;
    let mut cluster = managed("beat1");
    cluster["spec"]["leaseDurationSeconds"] = json!(SECONDS);
    apply(testbed, &[cluster])?;
    accept(testbed, "beat1", true)?;
    wait_condition(testbed, "beat1", "HubAcceptedManagedCluster", "True/HubClusterAdminAccepted")?;
    let renew = |time: k8s_openapi::jiff::Timestamp| -> Result<()> {
        let patch = json!({"spec": {"renewTime": time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()}});
        testbed.hub.server.patch("lease managed-cluster-lease -n beat1", &patch).map(drop)
    };
    let now = k8s_openapi::jiff::Timestamp::now;
    wait::until("its Lease", SOON, || renew(now()))?;
    available(testbed)?;
    wait_condition(testbed, "beat1", "ManagedClusterConditionClockSynced", "True/ManagedClusterClockSynced")?;
    wait_taint(testbed, None)?;
    // Without its label, a Lease would never be found stale.
    let label = "open-cluster-management.io/cluster-name";
    testbed.hub.server.label(&format!("lease managed-cluster-lease -n beat1 {label}-"))?;
    wait::until_true("its label", SOON, || {
        Ok(get(testbed, "lease managed-cluster-lease -n beat1")?["metadata"]["labels"][label] == "beat1")
    })?;
    missed(testbed, || renew(now()))?;
    // Back, with a clock that is off: it is there all the same, and is missed by the hub's clock.
    // Other clocks are those of `register`'s tests.
    let behind = -k8s_openapi::jiff::SignedDuration::from_mins(10);
    renew(now() + behind)?;
    available(testbed)?;
    let (clean, allowance) = pace::beside(&testbed.hub.server, || {
        let back = Instant::now();
        wait_taint(testbed, None)?;
        Ok(back.elapsed())
    })?;
    print(&format!("the taint of an agent that is back went after {clean:?}"));
    ensure!(clean < CLEAN + allowance, "the taint went after {clean:?}, and the hub's part may be {allowance:?}");
    wait_condition(testbed, "beat1", "ManagedClusterConditionClockSynced", "False/ManagedClusterClockOutOfSync")?;
    ensure!(condition(testbed, "beat1", AVAILABLE)?.starts_with("True"));
    missed(testbed, || renew(now() + behind))?;
    testbed.hub.server.delete("managedcluster beat1")
}

/// An agent that falls silent after `renew` is told of and tainted, both to the second. The taint
/// comes last, so its time is that of both.
fn missed(testbed: &Testbed, renew: impl Fn() -> Result<()>) -> Result<()> {
    let grace = Duration::from_secs(5 * SECONDS);
    wait::timely("the taint of a silent agent", grace + Duration::from_secs(1), || {
        renew()?;
        available(testbed)?;
        wait_taint(testbed, None)?;
        // Its last renewal is between these two.
        let before = Instant::now();
        renew()?;
        let after = Instant::now();
        let ((told, tainted), allowance) = pace::beside(&testbed.hub.server, || {
            wait_condition(testbed, "beat1", AVAILABLE, "Unknown/ManagedClusterLeaseUpdateStopped")?;
            let early = before.elapsed();
            ensure!(early + Duration::from_millis(500) > grace, "it was told of within its grace, after {early:?}");
            let told = after.elapsed();
            wait_taint(testbed, Some("cluster.open-cluster-management.io/unreachable"))?;
            Ok((told, after.elapsed()))
        })?;
        print(&format!(
            "a silent agent was told of after {told:?}, tainted after {tainted:?}; the hub's part may be {allowance:?}"
        ));
        Ok(tainted.saturating_sub(allowance))
    })
}

/// As an agent says it.
fn available(testbed: &Testbed) -> Result<()> {
    let cluster = get(testbed, "managedcluster beat1")?;
    let mut conditions = cluster["status"]["conditions"].as_array().cloned().context("conditions")?;
    conditions.retain(|condition| condition["type"] != AVAILABLE);
    conditions.push(json!({"type": AVAILABLE, "status": "True", "reason": "ManagedClusterAvailable", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}));
    let status = json!({"status": {"conditions": conditions}});
    testbed.hub.server.patch("managedcluster beat1 --subresource=status", &status).map(drop)
}

fn wait_taint(testbed: &Testbed, key: Option<&str>) -> Result<()> {
    wait::until(&format!("the taint {key:?}"), SOON, || {
        let cluster = get(testbed, "managedcluster beat1")?;
        let taints = cluster["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let keys: Vec<_> = taints.iter().filter_map(|taint| taint["key"].as_str()).collect();
        ensure!(keys == key.into_iter().collect::<Vec<_>>(), "{keys:?}");
        Ok(())
    })
}
