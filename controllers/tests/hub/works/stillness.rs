//! What is so is not written again.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;
use tokio::time::Instant;

use super::{Place, WORKS, config_map};
use crate::fixture::SOON;

const WORKS_HERE: u32 = 20;
/// Of those, so many with pods: nodes take only so many.
const WITH_PODS: u32 = 4;
/// For which nothing is asked.
const QUIET: Duration = Duration::from_secs(5);

pub fn restart(testbed: &Testbed) -> Result<()> {
    let cluster = "works-still";
    let mut place = Place::start(testbed, cluster)?;
    let web = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": cluster, "name": "*"},
        "feedbackRules": [{"type": "WellKnownStatus"}],
        "updateStrategy": {"type": "ServerSideApply"}});
    let names: Vec<String> = (0..WORKS_HERE).map(|number| format!("still-{number}")).collect();
    for (number, name) in (0..).zip(&names) {
        let labels = json!({"app": name});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": cluster},
            "spec": {"replicas": u32::from(number < WITH_PODS), "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": cluster},
            "spec": {"selector": labels, "ports": [{"port": 80}]}});
        let manifests = [deployment, service, config_map(cluster, name, &json!({"a": "b"}))];
        place.work(name, &manifests, &json!({"manifestConfigs": [web]}))?;
    }
    for name in &names {
        place.wait_applied(name)?;
    }
    for name in names.iter().take(WITH_PODS as usize) {
        wait::until(&format!("{name} to be ready"), 2 * SOON, || {
            let values = place.values(name, 0)?;
            ensure!(values["ReadyReplicas"] == 1, "{values}");
            Ok(())
        })?;
    }
    let versions = |place: &Place<'_>| -> Result<String> {
        let line = "jsonpath={range.items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion},{end}";
        let hub = place.hub(&format!("get {WORKS} -n {cluster} -o {line}"))?;
        let member = place.member(&format!("get deployments,services,configmaps -n {cluster} -o {line}"))?;
        let applied = place.member(&format!("get {} -o {line}", super::APPLIED))?;
        Ok([hub, member, applied].concat())
    };
    let before = versions(&place)?;
    place.running.restart()?;
    let asked = |place: &Place<'_>| place.running.metric("cluster_gateway_delivery_member_requests_total", cluster);
    let expected = 4.0 * f64::from(WORKS_HERE);
    wait::until_true("all to be looked at", SOON, || Ok(asked(&place)? >= expected))?;
    wait::until("all to count", SOON, || {
        let applied = place.running.metric("cluster_gateway_delivery_objects", "applied")?;
        ensure!((applied - 3.0 * f64::from(WORKS_HERE)).abs() < 0.1, "{applied}");
        Ok(())
    })?;
    // One more work ends after all that is to be done for the others.
    place.work("last", &[config_map(cluster, "last", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("last")?;
    let after = versions(&place)?;
    let missing: Vec<&str> = before.split(',').filter(|one| !after.split(',').any(|other| other == *one)).collect();
    ensure!(missing.is_empty(), "{missing:?} changed");
    // Nothing is asked any more, either.
    let (settled, begin) = (asked(&place)?, Instant::now());
    while begin.elapsed() < QUIET {
        ensure!((asked(&place)? - settled).abs() < 0.1, "{settled} requests became {}", asked(&place)?);
        // Which takes its time, and leads to a look at nothing.
        place
            .hub(&format!("annotate --overwrite {WORKS} last -n {cluster} touched={}", begin.elapsed().as_millis()))?;
    }
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    names.push("last");
    place.end(&names)
}
