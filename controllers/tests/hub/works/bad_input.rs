//! Manifests that no member can apply are reported, and block no others.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{Place, WORKS, condition, config_map, said, strategy};
use crate::fixture::{SOON, namespace};

/// The API server's limit of an object's data.
const MEBIBYTE: usize = 1 << 20;

/// Time to apply 1,500 objects.
const MANY: Duration = Duration::from_mins(3);
/// The limit of one work, by the documentation.
const MOST_MANIFESTS: usize = 1_500;

/// Applies a work of `manifests` and a valid one, which is last; returns the messages of all but
/// that one.
fn told(place: &Place<'_>, name: &str, mut manifests: Vec<Value>, more: &Value) -> Result<Vec<String>> {
    let bad = manifests.len();
    let good = format!("{name}-good");
    manifests.push(config_map(place.cluster, &good, &json!({"a": "b"})));
    place.work(name, &manifests, more)?;
    place.wait_manifest(name, bad, "Applied", "True/AppliedManifestComplete")?;
    ensure!(!place.object("configmap", &good)?.is_null(), "what is told to be applied is not there");
    (0..bad).map(|ordinal| place.wait_manifest(name, ordinal, "Applied", "False/AppliedManifestFailed")).collect()
}

pub fn refused(testbed: &Testbed) -> Result<()> {
    let cluster = "works-bad";
    let place = Place::start(testbed, cluster)?;
    let ending = terminating(&place)?;
    let long = config_map(cluster, "long", &json!({"a": "x".repeat(MEBIBYTE + 1)}));
    let web = |label: &str| {
        let labels = json!({"app": label});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "fixed", "namespace": cluster},
            "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "none"}]}}}})
    };
    place.work("fixed", &[web("one")], &json!({}))?;
    place.wait_applied("fixed")?;
    let all = told(&place, "refused", vec![config_map(&ending, "late", &json!({"a": "b"})), long], &json!({}))?;
    ensure!(all[0].contains("is being terminated") && all[0].contains(&ending), "{}", all[0]);
    ensure!(all[1].contains("may not be more than 1048576 bytes") || all[1].contains("Too long"), "{}", all[1]);
    // An object with an immutable field stays as it is, and the message names the field.
    let all = told(&place, "fixed", vec![web("two")], &json!({}))?;
    ensure!(all[0].contains("spec.selector") && all[0].contains("immutable"), "{}", all[0]);
    let found = place.object("deployment", "fixed")?;
    ensure!(found["spec"]["selector"]["matchLabels"]["app"] == "one", "{found}");
    place.member().patch(&format!("configmap held -n {ending}"), &json!({"metadata": {"finalizers": null}}))?;
    place.end(&["refused", "fixed"])
}

/// A namespace of the member that stays in termination.
fn terminating(place: &Place<'_>) -> Result<String> {
    let name = format!("{}-ending", place.cluster);
    let mut held = config_map(&name, "held", &json!({}));
    held["metadata"]["finalizers"] = json!(["works.example/held"]);
    place.member().apply(&[namespace(&name), held])?;
    place.member().delete(&format!("namespace {name} --wait=false"))?;
    wait::until("that it ends", SOON, || {
        let found = place.member().read(&format!("namespace {name}"))?;
        ensure!(found["status"]["phase"] == "Terminating", "{found}");
        Ok(())
    })?;
    Ok(name)
}

/// For an object of a Helm release, the status reports a conflict with Helm where nothing is
/// forced. Where the object is shared, Helm's labels and annotations stay.
pub fn of_helm(testbed: &Testbed) -> Result<()> {
    let cluster = "works-helm";
    let place = Place::start(testbed, cluster)?;
    for name in ["held", "shared"] {
        let mut object = config_map(cluster, name, &json!({"a": "helm's", "own": "x"}));
        object["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "Helm"});
        object["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "web"});
        let words = ["apply", "--server-side", "--field-manager=helm", "-f", "-"];
        place.member().kubectl().args(words).stdin(object.to_string()).run()?.success()?;
    }
    let map = |name: &str| config_map(cluster, name, &json!({"a": "wanted"}));
    let configs = json!({"manifestConfigs": [strategy(cluster, "held", &json!({"type": "ServerSideApply"}))]});
    let all = told(&place, "helm", vec![map("held")], &configs)?;
    ensure!(all[0].contains("conflict with \"helm\": .data.a"), "{}", all[0]);
    ensure!(place.object("configmap", "held")?["data"]["a"] == "helm's", "it was taken");
    place.work("updated", &[map("shared")], &json!({}))?;
    place.wait_applied("updated")?;
    let shared = place.object("configmap", "shared")?;
    ensure!(shared["data"]["a"] == "wanted", "{shared}");
    ensure!(shared["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "Helm", "{shared}");
    ensure!(shared["metadata"]["annotations"]["meta.helm.sh/release-name"] == "web", "{shared}");
    place.end(&["helm", "updated"])
}

/// A work whose `AppliedManifestWork` would have too long a name, and a work's name of 188
/// characters, which fits.
pub fn names(testbed: &Testbed) -> Result<()> {
    let cluster = "works-names";
    let place = Place::start(testbed, cluster)?;
    let (fits, long) = ("n".repeat(188), "n".repeat(189));
    let map = |name: &str| [config_map(cluster, name, &json!({"a": "b"}))];
    place.work(&long, &map("long"), &json!({}))?;
    let told = place.wait(&long, "Applied", "False/AppliedManifestWorkFailed")?;
    ensure!(told.contains("189 characters") && told.contains("at most 188"), "{told}");
    ensure!(place.object("configmap", "long")?.is_null(), "it was applied");
    place.work(&fits, &map("fits"), &json!({}))?;
    place.wait_applied(&fits)?;
    place.end(&[&fits, &long])
}

/// Paths and expressions that are invalid, or would never end.
pub fn expressions(testbed: &Testbed) -> Result<()> {
    let cluster = "works-expressions";
    let place = Place::start(testbed, cluster)?;
    let map = |name: &str| config_map(cluster, name, &json!({"a": "b"}));
    let config = |name: &str, more: Value| {
        let mut config =
            json!({"resourceIdentifier": {"group": "", "resource": "configmaps", "namespace": cluster, "name": name}});
        for (key, value) in more.as_object().into_iter().flatten() {
            config[key] = value.clone();
        }
        config
    };
    let ignoring = |field: &str, path: &str| {
        json!({"updateStrategy": {"type": "ServerSideApply", "serverSideApply": {
            "ignoreFields": [{"condition": "OnSpokePresent", field: [path]}]}}})
    };
    let ten = "[0,1,2,3,4,5,6,7,8,9]";
    let endless = (0..6).fold("true".to_owned(), |inner, level| format!("{ten}.all(x{level}, {inner})"));
    let rule = |condition: &str, expression: &str| json!({"condition": condition, "type": "CEL", "celExpressions": [expression]});
    let paths = json!([{"name": "broken", "path": ".data["}, {"name": "good", "path": ".data.a"}]);
    let rules =
        [rule("Broken", "object.data.a =="), rule("Endless", &endless), rule("Text", "'text'"), rule("Good", "true")];
    let configs = [
        config("path", ignoring("jsonPaths", ".data[")),
        config("pointer", ignoring("jsonPointers", "data")),
        config("endless", ignoring("jqPathExpressions", "def f: f; f")),
        config("repeated", ignoring("jqPathExpressions", "repeat(.)")),
        config("asked", json!({"feedbackRules": [{"type": "JSONPaths", "jsonPaths": paths}], "conditionRules": rules})),
    ];
    let names = ["path", "pointer", "endless", "repeated", "asked"];
    place.work("odd", &names.map(map), &json!({"manifestConfigs": configs}))?;
    for (ordinal, why) in [(0, "JSONPath error"), (1, "JSON Pointer error"), (2, "JQ expression"), (3, "JQ expression")]
    {
        let told = place.wait_manifest("odd", ordinal, "Applied", "False/AppliedManifestSSAIgnoreFieldError")?;
        ensure!(told.contains(why), "{told}");
        ensure!(place.object("configmap", names[ordinal])?.is_null(), "{} was applied", names[ordinal]);
    }
    place.wait_manifest("odd", 4, "Applied", "True/AppliedManifestComplete")?;
    let told = place.wait_manifest("odd", 4, "StatusFeedbackSynced", "False/StatusFeedbackSyncFailed")?;
    ensure!(told.contains("failed to parse json path .data["), "{told}");
    ensure!(place.values("odd", 4)? == json!({"good": "b"}), "{}", place.values("odd", 4)?);
    for (kind, why) in
        [("Broken", "Syntax error"), ("Endless", "budget exceeded"), ("Text", "expected bool result, got string")]
    {
        let told = place.wait_manifest("odd", 4, kind, "False/ConditionRuleExpressionError")?;
        ensure!(told.contains(why), "{kind}: {told}");
    }
    place.wait_manifest("odd", 4, "Good", "True/ConditionRuleEvaluated")?;
    limited(&place)?;
    // None of these blocks another work.
    place.work("beside", &[map("beside")], &json!({}))?;
    place.wait_applied("beside")?;
    place.end(&["odd", "beside", "many"])
}

/// More expressions than a work may have: for the rest, the status reports an internal error, for
/// our own limit.
fn limited(place: &Place<'_>) -> Result<()> {
    let rule = |number: usize| {
        let expression = format!("{number} == {number}");
        json!({"condition": format!("Rule{number}"), "type": "CEL", "celExpressions": [expression]})
    };
    let configs: Vec<Value> = ["one", "two"]
        .iter()
        .enumerate()
        .map(|(at, name)| {
            json!({"resourceIdentifier":
                {"group": "", "resource": "configmaps", "namespace": place.cluster, "name": name},
                "conditionRules": (40 * at..40 * (at + 1)).map(rule).collect::<Vec<_>>()})
        })
        .collect();
    let maps = ["one", "two"].map(|name| config_map(place.cluster, name, &json!({"a": "b"})));
    place.work("many", &maps, &json!({"manifestConfigs": configs}))?;
    place.wait_applied("many")?;
    wait::until("what is told of the rules", SOON, || {
        let work = place.testbed.hub.server.read(&format!("{WORKS} many -n {}", place.cluster))?;
        let manifests = work["status"]["resourceStatus"]["manifests"].as_array().context("no manifests")?.clone();
        let all: Vec<String> =
            (0..80).map(|number| said(condition(&manifests[number / 40], &format!("Rule{number}")))).collect();
        let count = |expected: &str| all.iter().filter(|said| *said == expected).count();
        let (good, internal) = (count("True/ConditionRuleEvaluated"), count("Unknown/ConditionRuleInternalError"));
        ensure!((good, internal) == (64, 16), "{all:?}");
        Ok(())
    })
}

/// More manifests than the limit, as many as the limit, and as many with a status that is too large
/// for the hub: each reports so, and blocks no other.
pub fn crowded(testbed: &Testbed) -> Result<()> {
    let cluster = "works-crowded";
    let place = Place::start(testbed, cluster)?;
    let map = |number: usize| config_map(cluster, &format!("crowd-{number}"), &json!({"a": "x".repeat(150)}));
    let maps: Vec<Value> = (0..=MOST_MANIFESTS).map(map).collect();
    // This member accepts no list of more than 1,024 entries (feature gate CBORServingAndStorage).
    // Orphaned objects are not listed.
    let orphans = json!({"deleteOption": {"propagationPolicy": "Orphan"}});
    place.work("crowd", &maps, &orphans)?;
    let told = place.wait("crowd", "Applied", "False/AppliedManifestWorkFailed")?;
    ensure!(told.contains("it has 1501 manifests, and at most 1500 are applied: split it"), "{told}");
    ensure!(place.object("configmap", "crowd-0")?.is_null(), "it was applied");
    // The most that a work may hold.
    place.work("crowd", &maps[..MOST_MANIFESTS], &orphans)?;
    wait::until("that all are applied", MANY, || {
        let work = place.read("crowd")?;
        let applied = condition(&work["status"], "Applied");
        ensure!(
            said(applied) == "True/AppliedManifestWorkComplete" && !applied.to_string().contains("left out"),
            "{applied}"
        );
        Ok(())
    })?;
    let manifests = |name: &str| -> Result<usize> {
        Ok(place.read(name)?["status"]["resourceStatus"]["manifests"].as_array().map_or(0, Vec::len))
    };
    ensure!(manifests("crowd")? == MOST_MANIFESTS, "{}", manifests("crowd")?);
    // All parts of a manifest that its status repeats are long.
    let (kind, name) = ("K".repeat(60), "n".repeat(195));
    let long = |number: usize| {
        let name = format!("{name}-{number:04}");
        json!({"apiVersion": "x/v1", "kind": kind, "metadata": {"name": name}})
    };
    let long: Vec<Value> = (0..MOST_MANIFESTS).map(long).collect();
    place.work("long", &long, &json!({}))?;
    let told = place.wait("long", "Applied", "False/AppliedManifestWorkFailed")?;
    let why = "the status of its 1500 manifests is larger than the hub takes, and left out: split the work";
    ensure!(told.contains(why) && manifests("long")? == 0, "{told}");
    place.work("beside", &[config_map(cluster, "beside", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("beside")?;
    for name in ["crowd", "long"] {
        place.delete(&format!("{WORKS} {name} -n {cluster} --wait=false"))?;
        wait::until_true(&format!("the end of {name}"), MANY, || Ok(place.read(name)?.is_null()))?;
    }
    let left = format!("/api/v1/namespaces/{cluster}/configmaps");
    place.member().kubectl().args(["delete", "--raw", &left]).run()?.success()?;
    place.end(&["beside"])
}
