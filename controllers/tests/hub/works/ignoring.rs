//! Fields that are left to others on a member, and are not fought over.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::control_plane::start_autoscaler;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::{Place, config_map, strategy};
use crate::fixture::SOON;

/// The ways in which `ignoreFields` names the same field.
const WAYS: [(&str, &str, &str); 3] = [
    ("path", "jsonPaths", ".data.a"),
    ("pointer", "jsonPointers", "/data/a"),
    ("jq", "jqPathExpressions", ".data | select(has(\"b\")) | .a"),
];
/// Changes that each lead to a pass.
const PASSES: usize = 5;
/// Shortest pauses between attempts for an object that conflicts and changes.
const BETWEEN_TRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

fn change(place: &Place<'_>, name: &str, data: &Value) -> Result<()> {
    place.member().patch(&format!("configmap {name} -n {}", place.cluster), &json!({"data": data})).map(drop)
}

fn wait_data(place: &Place<'_>, name: &str, expected: &Value) -> Result<()> {
    wait::until(&format!("{name} to have {expected}"), SOON, || {
        let found = place.object("configmap", name)?;
        ensure!(found["data"] == *expected, "{found}");
        Ok(())
    })
}

/// Waits until the part has seen all earlier changes: it sees changes in their order.
fn looked(place: &Place<'_>, marker: &str) -> Result<()> {
    change(place, marker, &json!({"a": "by hand"}))?;
    wait_data(place, marker, &json!({"a": "wanted"}))
}

pub fn each_way(testbed: &Testbed) -> Result<()> {
    let cluster = "works-ignoring";
    let place = Place::start(testbed, cluster)?;
    let names = |when: &str| WAYS.map(|(name, ..)| format!("{}-{name}", when.to_lowercase()));
    let (present, changed) = ("OnSpokePresent", "OnSpokeChange");
    let config = |when: &str, (name, field, path): (&str, &str, &str)| {
        let ignored = json!({"condition": when, field: [path]});
        let how = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "ignoreFields": [ignored]}});
        strategy(cluster, &format!("{}-{name}", when.to_lowercase()), &how)
    };
    let configs: Vec<Value> = [present, changed].iter().flat_map(|when| WAYS.map(|way| config(when, way))).collect();
    let put = |b: &str| {
        let all = names(present).into_iter().chain(names(changed));
        let mut manifests: Vec<Value> =
            all.map(|name| config_map(cluster, &name, &json!({"a": "wanted", "b": b}))).collect();
        manifests.extend(["first", "second"].map(|name| config_map(cluster, name, &json!({"a": "wanted"}))));
        place.work("ignoring", &manifests, &json!({"manifestConfigs": configs}))
    };
    put("1")?;
    place.wait_applied("ignoring")?;
    for name in names(present).iter().chain(&names(changed)) {
        ensure!(place.object("configmap", name)?["data"]["a"] == "wanted", "{name}: a new one has all of its fields");
        change(&place, name, &json!({"a": "by hand"}))?;
    }
    looked(&place, "first")?;
    for name in names(present).iter().chain(&names(changed)) {
        ensure!(place.object("configmap", name)?["data"]["a"] == "by hand", "{name} was fought over");
    }
    // Another field of the manifests changes: with `OnSpokeChange`, the whole manifest is applied.
    put("2")?;
    for name in names(present) {
        wait_data(&place, &name, &json!({"a": "by hand", "b": "2"}))?;
    }
    for name in names(changed) {
        wait_data(&place, &name, &json!({"a": "wanted", "b": "2"}))?;
    }
    looked(&place, "second")?;
    place.wait_applied("ignoring")?;
    place.end(&["ignoring"])
}

/// Beside the member's own autoscaler, which sets the replicas: once the manifest has them and they
/// are ignored, and once the manifest does not have them.
pub fn autoscaled(testbed: &Testbed) -> Result<()> {
    let cluster = "works-autoscaled";
    let place = Place::start(testbed, cluster)?;
    let autoscaler = start_autoscaler(testbed.launcher(), place.member())?;
    let ignored = json!([{"condition": "OnSpokePresent", "jsonPaths": [".spec.replicas"]}]);
    for (name, replicas, ignored) in [("scaled", json!(1), ignored), ("shared", Value::Null, json!([]))] {
        scaled(&place, name, &replicas, &ignored).map_err(|error| error.context(autoscaler.log_tail()))?;
    }
    // The member adds defaults to the autoscaler's object, which are left alone, too.
    let updates = place.running.metric("cluster_gateway_delivery_actions_total", "action=\"update\"")?;
    ensure!(updates < 0.5, "{updates} updates of what is as it should be");
    drop(autoscaler);
    place.end(&["scaled", "shared"])
}

/// By the generations that the member counts, each of the two writers wrote its own fields once.
fn scaled(place: &Place<'_>, name: &str, replicas: &Value, ignored: &Value) -> Result<()> {
    let (cluster, labels) = (place.cluster, json!({"app": name}));
    let deployment = |image: &str| {
        let mut one = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": cluster},
            "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": image}]}}}});
        if !replicas.is_null() {
            one["spec"]["replicas"] = replicas.clone();
        }
        one
    };
    let autoscaler = json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, "namespace": cluster},
        "spec": {"minReplicas": 3, "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}});
    let config = json!({
        "resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": cluster, "name": name},
        "feedbackRules": [{"type": "WellKnownStatus"}],
        "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "ignoreFields": ignored}}});
    let put =
        |image: &str| place.work(name, &[deployment(image), autoscaler.clone()], &json!({"manifestConfigs": [config]}));
    put("web:1")?;
    let ready = || {
        wait::until(&format!("three replicas of {name} to be told"), 2 * SOON, || {
            let values = place.values(name, 0)?;
            ensure!(values["ReadyReplicas"] == 3, "{values}");
            Ok(())
        })
    };
    ready()?;
    let by = place.object("deployment", name)?["metadata"]["managedFields"].clone();
    let scale = by.as_array().into_iter().flatten().find(|entry| entry["subresource"] == "scale");
    let scaler = scale.map(|entry| &entry["manager"]);
    // For a field that had no owner, the member does not record who scaled it.
    ensure!(scaler.map_or(replicas.is_null(), |manager| manager == "kube-controller-manager"), "who scaled it? {by}");
    let applies = || place.running.metric("cluster_gateway_delivery_actions_total", "action=\"apply\"");
    let before = applies()?;
    put("web:2")?;
    wait::until("the other image", SOON, || {
        let image = place.object("deployment", name)?;
        ensure!(image["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2", "{image}");
        Ok(())
    })?;
    ready()?;
    place.wait_applied(name)?;
    let found = place.object("deployment", name)?;
    ensure!(found["spec"]["replicas"] == 3, "replicas are taken back: {found}");
    // Created, scaled, and given the other image.
    ensure!(found["metadata"]["generation"] == 3, "it was written over and over: {found}");
    // An apply that changes nothing writes nothing, so applies are counted as well.
    let applies = applies()? - before;
    ensure!(applies < 1.5, "it was applied {applies} times");
    Ok(())
}

/// A conflict of server-side apply is reported, and not retried continuously.
pub fn conflicts(testbed: &Testbed) -> Result<()> {
    let cluster = "works-conflicts";
    let place = Place::start(testbed, cluster)?;
    let others: Vec<String> = (0..2 * PASSES).map(|number| format!("other-{number}")).collect();
    let mut manifests = vec![config_map(cluster, "taken", &json!({"a": "wanted"}))];
    manifests.extend(others.iter().map(|name| config_map(cluster, name, &json!({"a": "wanted"}))));
    let config = strategy(cluster, "taken", &json!({"type": "ServerSideApply"}));
    place.work("conflicts", &manifests, &json!({"manifestConfigs": [config]}))?;
    place.wait_applied("conflicts")?;
    change(&place, "taken", &json!({"a": "by hand"}))?;
    let told = place.wait_manifest("conflicts", 0, "Applied", "False/AppliedManifestFailed")?;
    let expected = "Apply failed with 1 conflict: conflict with \"kubectl-patch\" using v1: .data.a";
    ensure!(told == format!("Failed to apply manifest: cluster {cluster}: {expected}"), "{told}");
    place.wait("conflicts", "Applied", "False/AppliedManifestWorkFailed")?;
    let (unchanged, changing) = others.split_at(PASSES);
    for other in unchanged {
        looked(&place, other)?;
    }
    let tries = refused(testbed, cluster)?.len();
    ensure!(tries == 1, "{tries} tries while others of its work changed");
    // After a change of the object itself, the part retries, but not for each change.
    for other in changing {
        place.member().annotate(&format!("configmap taken -n {cluster} touched={other}"))?;
        looked(&place, other)?;
    }
    let tries = wait::until("another try", SOON, || {
        let tries = refused(testbed, cluster)?;
        ensure!(tries.len() > 1, "{tries:?}");
        Ok(tries)
    })?;
    for (gap, least) in tries.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).zip(BETWEEN_TRIES) {
        ensure!(gap >= least, "{gap:?} after a try: {tries:?}");
    }
    let counted =
        place.running.metric("cluster_gateway_delivery_actions_total", "action=\"apply\",result=\"conflict\"")?;
    ensure!(counted > 1.5, "{counted} conflicts are counted");
    ensure!(place.object("configmap", "taken")?["data"]["a"] == "by hand", "it was taken");
    place.end(&["conflicts"])
}

/// When the member refused to apply the object, relative to the first refusal.
fn refused(testbed: &Testbed, cluster: &str) -> Result<Vec<Duration>> {
    let all = testbed.member.seen(&format!("/namespaces/{cluster}/configmaps/taken"))?;
    let refused = all.iter().filter(|entry| entry["responseStatus"]["code"] == 409);
    let times = refused.map(|entry| Ok(entry["requestReceivedTimestamp"].as_str().context("no time")?.parse()?));
    let mut times = times.collect::<Result<Vec<Timestamp>>>()?;
    times.sort();
    let since = |time: &Timestamp| Ok(Duration::try_from(time.duration_since(times[0]))?);
    times.iter().map(since).collect()
}

/// The hub refuses a field manager with a wrong name when the work is written, and names the field.
pub fn managers(testbed: &Testbed) -> Result<()> {
    let cluster = "works-managers";
    let place = Place::start(testbed, cluster)?;
    let put = |manager: &str| {
        let how = json!({"type": "ServerSideApply", "serverSideApply": {"fieldManager": manager, "force": true}});
        let configs = json!({"manifestConfigs": [strategy(cluster, "managed", &how)]});
        place.work("managed", &[config_map(cluster, "managed", &json!({"a": manager}))], &configs)
    };
    put("work-agent-ours")?;
    place.wait_applied("managed")?;
    for wrong in ["helm", "my-work-agent", "Work-agent"] {
        let Err(refused) = put(wrong) else { anyhow::bail!("{wrong} is taken") };
        let refused = format!("{refused:#}");
        ensure!(refused.contains("serverSideApply.fieldManager"), "{wrong}: {refused}");
    }
    ensure!(place.object("configmap", "managed")?["data"]["a"] == "work-agent-ours");
    place.end(&["managed"])
}
