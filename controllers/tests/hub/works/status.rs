//! Reports of objects: values, and conditions by rules.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::start_job_controller;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Place, condition, config_map};
use crate::fixture::{SOON, wait_end};

/// The period in which a value changes all the time.
const FLAPS: Duration = Duration::from_secs(13);
/// Pause between two changes: twenty a second are far more than may be written, and leave the
/// machine to other tests.
const PACE: Duration = Duration::from_millis(50);

pub fn told(testbed: &Testbed) -> Result<()> {
    let cluster = "works-told";
    let place = Place::with_sets(testbed, cluster)?;
    let jobs_run = start_job_controller(testbed.launcher(), place.member())?;
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job", "namespace": cluster},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "c:1"}]}}}});
    let manifests = [job, config_map(cluster, "map", &json!({"text": "t"}))];
    let paths = json!([{"name": "text", "path": ".data.text"}, {"name": "missing", "path": ".data.none"}]);
    let bad = json!([{"name": "whole", "path": ".data"}]);
    let of = |resource: &str, group: &str, more: Value| {
        let mut config = json!({"resourceIdentifier":
            {"group": group, "resource": resource, "namespace": cluster, "name": "*"}});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        config
    };
    let rules = json!([{"condition": "Complete", "type": "WellKnownConditions"}]);
    let odd = json!([{"condition": "Odd", "type": "CEL", "celExpressions": ["object.nothing.there"]}]);
    let feedback = |paths: &Value| json!([{"type": "JSONPaths", "jsonPaths": paths}]);
    let jobs = of("jobs", "batch", json!({"feedbackRules": [{"type": "WellKnownStatus"}], "conditionRules": rules}));
    let maps = of("configmaps", "", json!({"feedbackRules": feedback(&paths), "conditionRules": odd}));
    place.work("told", &manifests, &json!({"manifestConfigs": [jobs, maps]}))?;
    place.wait("told", "Complete", "False/ConditionRulesAggregated")?;
    place.wait_manifest("told", 1, "Odd", "False/ConditionRuleExpressionError")?;
    ensure!(place.values("told", 1)? == json!({"text": "t"}), "{}", place.values("told", 1)?);
    place.wait_manifest("told", 1, "StatusFeedbackSynced", "True/StatusFeedbackSynced")?;
    // A path to an object gives no value, and removal of a rule removes its condition.
    let maps = of("configmaps", "", json!({"feedbackRules": feedback(&bad)}));
    let ttl = json!({"ttlSecondsAfterFinished": 3, "propagationPolicy": "Foreground"});
    let jobs = of("jobs", "batch", json!({"feedbackRules": [{"type": "WellKnownStatus"}], "conditionRules": rules}));
    place.work("told", &manifests, &json!({"manifestConfigs": [jobs, maps], "deleteOption": ttl}))?;
    place.wait_manifest("told", 1, "StatusFeedbackSynced", "False/StatusFeedbackSyncFailed")?;
    wait::until("that the rule's condition is gone", SOON, || {
        let status = place.read("told")?["status"].clone();
        let manifest = &status["resourceStatus"]["manifests"][1];
        ensure!(condition(manifest, "Odd").is_null() && condition(&status, "Odd").is_null(), "{status}");
        Ok(())
    })?;
    // It is in progress until its pod succeeds.
    ensure!(condition(&place.read("told")?["status"], "Complete")["status"] == "False");
    succeed(&place, "job").map_err(|error| error.context(jobs_run.log_tail()))?;
    let before = wait::last_before("that it is complete", SOON, || {
        let work = place.read("told")?;
        let found = condition(&work["status"], "Complete");
        ensure!(work.is_null() || found["status"] == "True", "{work}");
        Ok(())
    })?;
    let told = place.values("told", 0)?;
    ensure!(told["JobComplete"] == "True" && told["JobSucceeded"] == 1, "{told}");
    // Nothing more of it is applied.
    place.member().delete(&format!("configmap map -n {cluster}"))?;
    place.wait_gone("told")?;
    ensure!(before.elapsed() > Duration::from_secs(1), "its time was not waited for");
    ensure!(place.object("configmap", "map")?.is_null(), "what is complete was repaired");
    ensure!(place.object("job", "job")?.is_null(), "its Job is left behind");
    wait_end(place.member(), &format!("pods -n {cluster}"))?;
    drop(jobs_run);
    place.end(&[])
}

/// Lets the pod of a Job that the member runs come to its end.
fn succeed(place: &Place<'_>, job: &str) -> Result<()> {
    let pods = format!("pods -n {} -l batch.kubernetes.io/job-name={job}", place.cluster);
    let name = wait::until("its pod to run", SOON, || {
        let pods = place.member().read(&pods)?;
        ensure!(pods["items"][0]["status"]["phase"] == "Running", "{pods}");
        pods["items"][0]["metadata"]["name"].as_str().map(str::to_owned).context("no name")
    })?;
    let completes = json!({"metadata": {"labels": {"completes": "yes"}}});
    place.member().patch(&format!("pod {name} -n {}", place.cluster), &completes).map(drop)
}

/// What the controllers of a cluster would say: but for [`told`], this member has none for jobs.
pub fn finish(place: &Place<'_>, job: &str) -> Result<()> {
    let now = place.member().read("namespace default")?["metadata"]["creationTimestamp"].clone();
    let of = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now});
    let status = json!({"status": {"startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [of("SuccessCriteriaMet"), of("Complete")]}});
    place.member().patch(&format!("job {job} -n {} --subresource=status", place.cluster), &status).map(drop)
}

pub fn flapping(testbed: &Testbed) -> Result<()> {
    let cluster = "works-flapping";
    let place = Place::start(testbed, cluster)?;
    let config = json!({"resourceIdentifier": {"group": "", "resource": "configmaps", "namespace": cluster, "name": "a"},
        "updateStrategy": {"type": "CreateOnly"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "v", "path": ".data.v"}]}]});
    let map = config_map(cluster, "a", &json!({"v": "0"}));
    place.work("flapping", &[map], &json!({"manifestConfigs": [config]}))?;
    place.wait_applied("flapping")?;
    let version = || Ok::<_, anyhow::Error>(place.read("flapping")?["metadata"]["resourceVersion"].clone());
    let put = |value: usize| {
        place.member().patch(&format!("configmap a -n {cluster}"), &json!({"data": {"v": value.to_string()}})).map(drop)
    };
    let (mut versions, begin, mut value) = (vec![version()?], Instant::now(), 0);
    while begin.elapsed() < FLAPS {
        value += 1;
        put(value)?;
        let now = version()?;
        if versions.last() != Some(&now) {
            versions.push(now);
        }
        std::thread::park_timeout(PACE);
    }
    // A handful of writes at once, then one in five seconds, which continues like that
    // (`pace::tests`): one per second would be more.
    ensure!((3..=10).contains(&versions.len()), "{} writes for {value} changes", versions.len());
    wait::until("the last value", 2 * SOON, || {
        let told = place.values("flapping", 0)?;
        ensure!(told["v"].as_str() == Some(value.to_string().as_str()), "{told}");
        Ok(())
    })?;
    place.end(&["flapping"])
}
