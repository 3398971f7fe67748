//! Complete objects are no longer applied, but still reported.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::status::finish;
use super::{Place, condition, config_map};
use crate::fixture::SOON;

pub fn kept(testbed: &Testbed) -> Result<()> {
    let cluster = "works-complete";
    let place = Place::start(testbed, cluster)?;
    one_of_two(&place)?;
    whole(&place)?;
    place.end(&["some", "all"])
}

/// One object of the work is complete, the other is not.
fn one_of_two(place: &Place<'_>) -> Result<()> {
    let mut jobs = ["first", "second"].map(|name| job(place.cluster, name));
    let rules = json!({"manifestConfigs": configs(place.cluster, true)});
    place.work("some", &jobs, &rules)?;
    place.wait("some", "Complete", "False/ConditionRulesAggregated")?;
    finish(place, "first")?;
    place.wait_manifest("some", 0, "Complete", "True/ConditionRuleEvaluated")?;
    // The complete job is deleted, as after its TTL, and the work changes.
    place.member().delete(&format!("job first -n {}", place.cluster))?;
    place.wait_manifest("some", 0, "Available", "False/ResourceNotAvailable")?;
    for job in &mut jobs {
        job["metadata"]["labels"] = json!({"changed": "yes"});
    }
    place.work("some", &jobs, &rules)?;
    wait::until_true("the other to change", SOON, || {
        Ok(place.object("job", "second")?["metadata"]["labels"]["changed"] == "yes")
    })?;
    place.wait_applied("some")?;
    place.wait_manifest("some", 0, "Complete", "True/ConditionRuleEvaluated")?;
    ensure!(place.object("job", "first")?.is_null(), "it is run again");
    Ok(())
}

/// All of a work is complete, until its rule is removed.
fn whole(place: &Place<'_>) -> Result<()> {
    let cluster = place.cluster;
    let manifests = [job(cluster, "third"), config_map(cluster, "beside", &json!({"v": "1"}))];
    place.work("all", &manifests, &json!({"manifestConfigs": configs(cluster, true)}))?;
    place.wait("all", "Complete", "False/ConditionRulesAggregated")?;
    finish(place, "third")?;
    place.wait("all", "Complete", "True/ConditionRulesAggregated")?;
    let drift = json!({"data": {"v": "2"}});
    place.member().patch(&format!("configmap beside -n {cluster}"), &drift)?;
    wait::until("what it says now", SOON, || {
        let told = place.values("all", 1)?;
        ensure!(told["v"] == "2", "{told}");
        Ok(())
    })?;
    ensure!(place.object("configmap", "beside")?["data"] == drift["data"], "it was repaired");
    place.work("all", &manifests, &json!({"manifestConfigs": configs(cluster, false)}))?;
    place.wait_applied("all")?;
    wait::until_true("that it is repaired", SOON, || Ok(place.object("configmap", "beside")?["data"]["v"] == "1"))?;
    let status = place.read("all")?["status"].clone();
    ensure!(condition(&status, "Complete").is_null(), "{status}");
    Ok(())
}

fn job(cluster: &str, name: &str) -> Value {
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": cluster},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}]}}}})
}

/// A feedback value of config maps, and with `has_rules` a rule for the completion of jobs.
fn configs(cluster: &str, has_rules: bool) -> Value {
    let of =
        |group: &str, resource: &str| json!({"group": group, "resource": resource, "namespace": cluster, "name": "*"});
    let paths = json!([{"name": "v", "path": ".data.v"}]);
    let maps = json!({"resourceIdentifier": of("", "configmaps"),
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}]});
    let jobs = json!({"resourceIdentifier": of("batch", "jobs"),
        "conditionRules": [{"condition": "Complete", "type": "WellKnownConditions"}]});
    if has_rules { json!([maps, jobs]) } else { json!([maps]) }
}
