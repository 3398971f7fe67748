//! The part `availability` with exactly what the chart grants it, and with any right less.
//!
//! `update` on `managedclusters/taints` is for hubs with upstream's webhook, which asks for it.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::CLUSTER;
use crate::fixture::{SOON, apply, condition, namespace};
use crate::part::Part;
use crate::rights::{grant, is_refused_to, nothing_refused, rendered, started_without};
use crate::{registration, works};

const PLACE: &str = "availability-less";
const PART: &str = "controllers.parts.availability=true";
/// One that answers, and one that does not.
const NAMES: [&str; 2] = ["less-here", "less-away"];
/// Until a loss is known, of Leases of one second: two periods of ten, and a moment.
const KNOWN: Duration = Duration::from_secs(45);

pub fn less(testbed: &Testbed) -> Result<()> {
    let alone = vec![registration::alone(), works::alone()];
    let mut part = Part::install(testbed, PLACE, PART, alone)?;
    let here = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
    testbed.hub.register_member(NAMES[0], &here)?;
    testbed.hub.register_member(NAMES[1], &here.at("https://127.0.0.1:1"))?;
    for name in NAMES {
        let managed = json!({"apiVersion": format!("{CLUSTER}/v1"), "kind": "ManagedCluster",
            "metadata": {"name": name, "annotations": {"cluster.core.oam.dev/delivery": "push"}},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 1}});
        apply(testbed, &[namespace(name), managed])?;
    }
    // What the part alone is asked for: the condition, and the taint of one that is lost.
    wait::until("that one is lost", KNOWN, || {
        let [here, away] = [0, 1].map(|at| testbed.hub.server.read(&format!("managedcluster {}", NAMES[at])));
        let (here, away) = (here?, away?);
        let kind = "ManagedClusterConditionAvailable";
        ensure!(condition(&here["status"], kind)["status"] == "True", "{here}");
        ensure!(condition(&away["status"], kind)["status"] == "Unknown", "{away}");
        ensure!(away["spec"]["taints"].to_string().contains("unreachable"), "{away}");
        Ok(())
    })?;
    nothing_refused(testbed, PLACE)?;
    part.running.stop()?;
    let objects = rendered(testbed, PLACE, PART)?;
    let read = ["managedclusters", "leases"];
    let read = read.into_iter().flat_map(|resource| ["list", "watch"].map(|verb| (resource, verb)));
    let write = [("managedclusters/status", "patch"), ("managedclusters", "patch")];
    for (resource, verb) in read.chain(write) {
        forget(testbed)?;
        let mut running = started_without(testbed, PLACE, &objects, (resource, verb))?;
        let what = format!("that {verb} on {resource} is missed");
        wait::until_true(&what, KNOWN, || is_refused_to(testbed, PLACE, verb, resource))?;
        running.stop()?;
    }
    // Who may not probe does not judge.
    forget(testbed)?;
    let mut running = started_without(testbed, PLACE, &objects, ("clustergateways/proxy", "get"))?;
    let unknown = || running.metric("cluster_gateway_controllers_probed_clusters", "state=\"unknown\"");
    wait::until_true("that nothing is known", SOON, || Ok(unknown()? > 1.5))?;
    let here = || testbed.hub.server.read(&format!("managedcluster {}", NAMES[0]));
    ensure!(here()?["status"]["conditions"].as_array().is_none_or(Vec::is_empty), "{}", here()?);
    grant(testbed, PLACE, &objects)?;
    wait::until_true("that it is judged", KNOWN, || {
        Ok(condition(&here()?["status"], "ManagedClusterConditionAvailable")["status"] == "True")
    })?;
    running.stop()?;
    part.delete(&format!("managedclusters {}", NAMES.join(" ")))?;
    NAMES.iter().try_for_each(|name| testbed.hub.forget_member(name))
}

/// Nothing is said of them: all is to be told, and tainted, anew.
fn forget(testbed: &Testbed) -> Result<()> {
    NAMES.iter().try_for_each(|name| {
        let none = json!({"status": {"conditions": []}});
        testbed.hub.server.patch(&format!("managedcluster {name} --subresource=status"), &none)?;
        testbed.hub.server.patch(&format!("managedcluster {name}"), &json!({"spec": {"taints": null}})).map(drop)
    })
}
