//! The part `availability` with exactly the rights that the chart grants it, each of which is used.
//!
//! `update` on `managedclusters/taints` is for hubs with upstream's webhook, which requires it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::promtool;
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use serde_json::{Value, json};

use super::CLUSTER;
use crate::argocd;
use crate::fixture::{Running, SOON, apply, condition, namespace};
use crate::part::Part;
use crate::rights::used::{events, none_idle, right};
use crate::rights::{NAME, grant, rendered, started_without};

const PLACE: &str = "audited-availability";
const PART: &str = "controllers.parts.availability=true";
/// A member that answers, one that does not, and one whose agent reports for it.
const NAMES: [&str; 3] = ["less-here", "less-away", "less-agent"];
/// Two more members that do not answer.
const HELD: [&str; 2] = ["less-held-a", "less-held-b"];
const AVAILABLE: &str = "ManagedClusterConditionAvailable";
/// Until a loss is known with Leases of one second: two periods of ten seconds, and some slack.
const KNOWN: Duration = Duration::from_secs(45);

pub fn used(testbed: &Testbed) -> Result<()> {
    // The part judges accepted clusters only.
    let alone = vec![turns::alone(&[argocd::ALONE])];
    let mark = testbed.audit.mark()?;
    let mut part = Part::install(testbed, PLACE, PART, alone)?;
    let here = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member(NAMES[0], &here)?;
    let away = here.at("https://127.0.0.1:1");
    testbed.hub.register_member(NAMES[1], &away)?;
    for name in NAMES {
        apply(testbed, &[namespace(name), managed(name, if name == NAMES[2] { 60 } else { 1 })])?;
    }
    // The agent's Lease is read only where an agent has reported.
    let spoken = available("ManagedClusterAvailable");
    testbed.hub.server.patch(&format!("managedcluster {} --subresource=status", NAMES[2]), &spoken)?;
    for name in NAMES {
        part.annotate(&format!("managedcluster {name} cluster.core.oam.dev/delivery=push"))?;
    }
    // The part's own task: the condition, and the taint of a lost cluster.
    let read = |at: usize| testbed.hub.server.read(&format!("managedcluster {}", NAMES[at]));
    wait::until("that one is lost", KNOWN, || {
        let (here, away) = (read(0)?, read(1)?);
        ensure!(condition(&here["status"], AVAILABLE)["status"] == "True", "{here}");
        ensure!(condition(&away["status"], AVAILABLE)["status"] == "Unknown", "{away}");
        ensure!(away["spec"]["taints"].to_string().contains("unreachable"), "{away}");
        Ok(())
    })?;
    let objects = rendered(testbed, PLACE, PART)?;
    let beside = BTreeSet::from([right("register.open-cluster-management.io", "managedclusters/taints", "update")]);
    none_idle(testbed, PLACE, &objects, mark, &(&events() | &beside))?;
    // The part distinguishes it from its own Lease.
    let leases = testbed.audit.read_by_name((PLACE, NAME), (NAMES[2], "leases"), mark)?;
    ensure!(leases.contains("managed-cluster-lease"), "{leases:?}");
    part.running.stop()?;

    // Without the right to probe, nothing is judged.
    let none = json!({"status": {"conditions": []}});
    testbed.hub.server.patch(&format!("managedcluster {} --subresource=status", NAMES[0]), &none)?;
    let mut running = started_without(testbed, PLACE, &objects, ("clustergateways/proxy", "get"))?;
    let unknown = || running.metric("cluster_gateway_controllers_probed_clusters", "state=\"unknown\"");
    wait::until_true("that nothing is known", SOON, || Ok(unknown()? > 0.5))?;
    ensure!(read(0)?["status"]["conditions"].as_array().is_none_or(Vec::is_empty), "{}", read(0)?);
    grant(testbed, PLACE, &objects)?;
    wait::until_true("that it is judged", KNOWN, || Ok(condition(&read(0)?["status"], AVAILABLE)["status"] == "True"))?;
    hold(&part, &running, &away)?;
    running.stop()?;
    part.delete(&format!("managedclusters {}", NAMES.join(" ")))?;
    NAMES[..2].iter().try_for_each(|name| testbed.hub.forget_member(name))
}

/// Two of three clusters that answered stop answering: the path to them may be at fault.
fn hold(part: &Part<'_>, running: &Running, away: &MemberSecret) -> Result<()> {
    let hub = &part.testbed.hub;
    for name in HELD {
        hub.register_member(name, away)?;
        apply(part.testbed, &[managed(name, 1)])?;
        hub.server.patch(&format!("managedcluster {name} --subresource=status"), &available("MemberAnswers"))?;
        part.annotate(&format!("managedcluster {name} cluster.core.oam.dev/delivery=push"))?;
    }
    let held = || running.metric("cluster_gateway_controllers_probed_clusters", "state=\"held\"");
    wait::until_true("that a loss is held", KNOWN, || Ok(held()? > 0.5))?;
    promtool::evaluated(&running.metrics()?, &["ClusterGatewayLossesHeld"])?;
    part.delete(&format!("managedclusters {}", HELD.join(" ")))?;
    HELD.iter().try_for_each(|name| hub.forget_member(name))
}

fn managed(name: &str, seconds: u32) -> Value {
    json!({"apiVersion": format!("{CLUSTER}/v1"), "kind": "ManagedCluster", "metadata": {"name": name},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": seconds}})
}

/// A status that reports the cluster as available, with that reason.
fn available(reason: &str) -> Value {
    let condition = json!({"type": AVAILABLE, "status": "True", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({"status": {"conditions": [condition]}})
}
