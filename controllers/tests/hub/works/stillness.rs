//! What is already correct is not written again.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::{size, wait};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{GROUP, Place, WORKS, condition, config_map};
use crate::fixture::{SOON, print, wait_end_within};

/// The number in the gate. `TEST_WORKS=1000` would take too long there.
const WORKS_HERE: usize = 100;
/// The works with pods, and those with a Service: the member has a limited number of nodes and
/// addresses.
const WITH_PODS: usize = 4;
const WITH_SERVICE: usize = 50;
/// A period without requests.
const QUIET: Duration = Duration::from_secs(5);
/// Pause between two looks during that period.
const LOOK: Duration = Duration::from_millis(50);

pub fn restart(testbed: &Testbed) -> Result<()> {
    let cluster = "works-still";
    let mut place = Place::start(testbed, cluster)?;
    let works_here = size::of("TEST_WORKS", WORKS_HERE)?;
    let limit = SOON * u32::try_from(works_here / WORKS_HERE + 2)?;
    let names: Vec<String> = (0..works_here).map(|number| format!("still-{number}")).collect();
    let works = works(cluster, &names);
    let objects: usize = 2 * works_here + WITH_SERVICE.min(works_here);
    for some in works.chunks(WORKS_HERE) {
        testbed.hub.server.create(some)?;
    }
    let counted = |place: &Place<'_>| place.running.metric("cluster_gateway_delivery_objects", "applied");
    let is_all = |count: f64| (count - f64::from(u32::try_from(objects).unwrap_or_default())).abs() < 0.1;
    wait::until_true("all to be applied", limit, || Ok(is_all(counted(&place)?)))?;
    wait::until("all to be told", limit, || {
        let told = testbed.hub.server.read(&format!("{WORKS} -n {cluster}"))?;
        let is_applied = |work: &&Value| condition(&work["status"], "Applied")["status"] == "True";
        let count = told["items"].as_array().into_iter().flatten().filter(is_applied).count();
        ensure!(count == works_here, "{count} of {works_here}");
        Ok(())
    })?;
    rolled_out(&place, works_here, limit)?;
    for name in names.iter().take(WITH_PODS) {
        wait::until(&format!("{name} to be ready"), limit, || {
            let values = place.values(name, 0)?;
            ensure!(values["ReadyReplicas"] == 1, "{values}");
            Ok(())
        })?;
    }
    let before = versions(&place, cluster)?;
    let begin = Instant::now();
    place.running.restart()?;
    let asked = |place: &Place<'_>| place.running.metric("cluster_gateway_delivery_member_requests_total", cluster);
    let expected = f64::from(u32::try_from(objects + works_here)?);
    wait::until_true("all to be looked at", limit, || Ok(asked(&place)? >= expected))?;
    wait::until_true("all to count", limit, || Ok(is_all(counted(&place)?)))?;
    print(&format!("{works_here} works, {objects} objects: looked at {:.1?} after a restart", begin.elapsed()));
    // One more work is finished after everything that is left to do for the others.
    place.work("last", &[config_map(cluster, "last", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("last")?;
    let after = versions(&place, cluster)?;
    let missing: Vec<&String> = before.iter().filter(|one| !after.contains(one)).collect();
    ensure!(missing.is_empty(), "{missing:?} changed");
    quiet(&place, cluster, &asked)?;
    place.delete(&format!("{WORKS} --all -n {cluster} --wait=false"))?;
    wait_end_within(&testbed.hub.server, &format!("{WORKS} -n {cluster}"), 3 * limit)?;
    place.end(&[])
}

/// Waits until the member's own controllers have nothing left to write: of many Deployments, they
/// may be behind.
fn rolled_out(place: &Place<'_>, works_here: usize, limit: Duration) -> Result<()> {
    wait::until("the Deployments to be rolled out", limit, || {
        let all = place.member().read(&format!("deployments -n {}", place.cluster))?;
        let progress = |deployment: &Value| condition(&deployment["status"], "Progressing")["reason"].clone();
        let done = all["items"].as_array().into_iter().flatten().filter(|it| progress(it) == "NewReplicaSetAvailable");
        let done = done.count();
        ensure!(done == works_here, "{done} of {works_here}");
        Ok(())
    })
}

/// As many works as `names`, with everything that must not be written again.
fn works(cluster: &str, names: &[String]) -> Vec<Value> {
    let web = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": cluster, "name": "*"},
        "feedbackRules": [{"type": "WellKnownStatus"}],
        "updateStrategy": {"type": "ServerSideApply"}});
    let mut works = Vec::new();
    for (number, name) in names.iter().enumerate() {
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": cluster},
            "spec": {"replicas": usize::from(number < WITH_PODS), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": cluster},
            "spec": {"selector": labels, "ports": [{"port": 80}]}});
        let mut manifests = vec![deployment, config_map(cluster, name, &json!({"a": "b"}))];
        manifests.extend((number < WITH_SERVICE).then_some(service));
        works.push(json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManifestWork",
            "metadata": {"name": name, "namespace": cluster},
            "spec": {"workload": {"manifests": manifests}, "manifestConfigs": [web]}}));
    }
    works
}

/// The versions of all objects, on the hub and on the member.
fn versions(place: &Place<'_>, cluster: &str) -> Result<Vec<String>> {
    let of = crate::fixture::versions;
    let hub = of(&place.testbed.hub.server, &format!("{WORKS} -n {cluster}"))?;
    let member = of(place.member(), &format!("deployments,services,configmaps -n {cluster}"))?;
    Ok([hub, member, of(place.member(), super::APPLIED)?].concat())
}

/// Checks that there are no more requests to the member, either.
fn quiet(place: &Place<'_>, cluster: &str, asked: &impl Fn(&Place<'_>) -> Result<f64>) -> Result<()> {
    let (settled, begin) = (asked(place)?, Instant::now());
    while begin.elapsed() < QUIET {
        ensure!((asked(place)? - settled).abs() < 0.1, "{settled} requests became {}", asked(place)?);
        // This leads to a pass that changes nothing.
        place.annotate(&format!("{WORKS} last -n {cluster} touched={}", begin.elapsed().as_millis()))?;
        std::thread::park_timeout(LOOK);
    }
    Ok(())
}
