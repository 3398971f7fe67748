//! What is in a work is on the member, and what is not in it any more is not.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{FINALIZER, Place, TOLD, condition, config_map, hash, said};
use crate::fixture::{SOON, definition};

pub fn everything(testbed: &Testbed) -> Result<()> {
    let cluster = "works-everything";
    let place = Place::start(testbed, cluster)?;
    let own = "works-everything-own";
    let labels = json!({"app": "web"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": own}, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": own},
        "spec": {"selector": labels, "ports": [{"port": 80}]}});
    let widget =
        json!({"apiVersion": "works.example/v1", "kind": "Everything", "metadata": {"name": "one"}, "size": 3});
    // Backwards: the order is the controllers'.
    let manifests = [
        widget,
        deployment,
        service,
        config_map(own, "settings", &json!({"a": "b"})),
        definition("works.example", "Everything", "v1", "Cluster"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own, "uid": "nobody's"}}),
    ];
    let web = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": own, "name": "*"},
        "feedbackRules": [{"type": "WellKnownStatus"}]});
    place.work("all", &manifests, &json!({"manifestConfigs": [web]}))?;
    place.wait_applied("all")?;
    place.wait("all", "Available", "True/ResourcesAvailable")?;
    wait::until("two replicas to be told", SOON, || {
        let values = place.values("all", 1)?;
        ensure!(values == json!({"ReadyReplicas": 2, "Replicas": 2, "AvailableReplicas": 2}), "{values}");
        Ok(())
    })?;
    let work = place.read("all")?;
    ensure!(work["metadata"]["finalizers"] == json!([FINALIZER]), "{}", work["metadata"]);
    let kinds = |ordinal: usize| &work["status"]["resourceStatus"]["manifests"][ordinal]["resourceMeta"];
    ensure!(kinds(0)["resource"] == "everythings" && kinds(5)["kind"] == "Namespace", "{}", work["status"]);
    listed(&place, own)?;
    place.end(&["all"])
}

/// The `AppliedManifestWork` lists them all, and owns each.
fn listed(place: &Place<'_>, own: &str) -> Result<()> {
    let applied = place.applied("all")?;
    ensure!(applied["metadata"]["name"] == format!("{}-all", hash()), "{applied}");
    ensure!(applied["spec"]["hubHash"] == hash() && applied["spec"]["manifestWorkName"] == "all", "{applied}");
    let resources = applied["status"]["appliedResources"].as_array().cloned().unwrap_or_default();
    let names: Vec<&Value> = resources.iter().map(|one| &one["resource"]).collect();
    let sorted = ["configmaps", "namespaces", "services", "customresourcedefinitions", "deployments", "everythings"];
    let mut expected = sorted.to_vec();
    expected.sort_by_key(|name| match *name {
        "customresourcedefinitions" => (1, "apiextensions"),
        "deployments" => (2, "apps"),
        "everythings" => (3, "works"),
        other => (0, other),
    });
    ensure!(names == expected, "{names:?}");
    for one in &resources {
        let (resource, name) = (one["resource"].as_str().unwrap_or_default(), one["name"].as_str().unwrap_or_default());
        let group = one["group"].as_str().map_or(String::new(), |group| format!(".{group}"));
        let object = place.member().read(&format!("{resource}{group} {name} -n {own}"))?;
        ensure!(object["metadata"]["uid"] == one["uid"], "{one} is another one than {object}");
        let owner = &object["metadata"]["ownerReferences"][0];
        ensure!(owner["uid"] == applied["metadata"]["uid"] && owner["controller"].is_null(), "{object}");
    }
    Ok(())
}

pub fn removed(testbed: &Testbed) -> Result<()> {
    let cluster = "works-removed";
    let place = Place::start(testbed, cluster)?;
    let map = |name: &str| config_map(cluster, name, &json!({"a": "b"}));
    place.work("one", &[map("own"), map("shared"), map("stays")], &json!({}))?;
    place.work("other", &[map("shared")], &json!({}))?;
    place.wait_applied("one")?;
    place.wait_applied("other")?;
    wait::until("two owners", SOON, || {
        let shared = place.object("configmap", "shared")?;
        ensure!(shared["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len) == 2, "{shared}");
        Ok(())
    })?;
    let uid = |name: &str| Ok::<_, anyhow::Error>(place.object("configmap", name)?["metadata"]["uid"].clone());
    let (shared, stays) = (uid("shared")?, uid("stays")?);
    place.work("one", &[map("stays")], &json!({}))?;
    wait::until_true("the end of what is not wanted", SOON, || Ok(place.object("configmap", "own")?.is_null()))?;
    place.wait_applied("one")?;
    wait::until("one owner", SOON, || {
        let left = place.object("configmap", "shared")?;
        ensure!(left["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len) == 1, "{left}");
        Ok(())
    })?;
    ensure!(uid("shared")? == shared && uid("stays")? == stays, "what stays is another one");
    wait::until("one to be listed", SOON, || {
        let resources = place.applied("one")?["status"]["appliedResources"].clone();
        ensure!(resources.as_array().map_or(0, Vec::len) == 1, "{resources}");
        Ok(())
    })?;
    let told = place.read("one")?["status"]["resourceStatus"]["manifests"].clone();
    ensure!(told.as_array().map_or(0, Vec::len) == 1, "{told}");
    place.work("other", &[map("another")], &json!({}))?;
    wait::until_true("the end of what was shared", SOON, || Ok(place.object("configmap", "shared")?.is_null()))?;
    place.end(&["one", "other"])
}

pub fn beside(testbed: &Testbed) -> Result<()> {
    let cluster = "works-beside";
    let place = Place::start(testbed, cluster)?;
    let late = json!({"apiVersion": "late.example/v1", "kind": "Late", "metadata": {"name": "late"}, "a": 1});
    let manifests = [
        config_map(cluster, "good", &json!({"a": "b"})),
        late,
        config_map("works-nowhere", "homeless", &json!({})),
        config_map(cluster, "good", &json!({"a": "c"})),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "refused", "namespace": cluster},
            "spec": {"ports": [{"port": 0}]}}),
    ];
    place.work("mixed", &manifests, &json!({}))?;
    place.wait("mixed", "Applied", "False/AppliedManifestWorkFailed")?;
    place.wait_manifest("mixed", 0, "Applied", "True/AppliedManifestComplete")?;
    ensure!(place.object("configmap", "good")?["data"]["a"] == "b", "the first counts");
    for (ordinal, why) in [(1, "Late"), (2, "works-nowhere"), (3, "duplicate"), (4, "spec.ports")] {
        let told = place.wait_manifest("mixed", ordinal, "Applied", "False/AppliedManifestFailed")?;
        ensure!(told.contains(why), "{told}");
    }
    // A definition that comes later counts within ten seconds, with no edit.
    let kind = definition("late.example", "Late", "v1", "Cluster");
    testbed.member.server.apply(&[kind])?;
    wait::until_true("the late one", TOLD, || Ok(!place.object("lates.late.example", "late")?.is_null()))?;
    place.wait_manifest("mixed", 1, "Applied", "True/AppliedManifestComplete")?;
    // And one that goes takes nothing with it that was not its own.
    place.member().delete("crd lates.late.example")?;
    wait::until("that it is missed", 2 * SOON, || {
        let work = place.read("mixed")?;
        let found = condition(&work["status"]["resourceStatus"]["manifests"][1], "Available");
        ensure!(said(found) != "True/ResourceAvailable", "{found}");
        Ok(())
    })?;
    place.end(&["mixed"])
}

pub fn orphans(testbed: &Testbed) -> Result<()> {
    let cluster = "works-orphans";
    let place = Place::start(testbed, cluster)?;
    let manifests = ["left", "owned"].map(|name| config_map(cluster, name, &json!({"a": "b"})));
    let rule = json!({"group": "", "resource": "configmaps", "namespace": cluster, "name": "left"});
    let left = json!({"deleteOption": {"propagationPolicy": "SelectivelyOrphan",
        "selectivelyOrphans": {"orphaningRules": [rule]}}});
    place.work("some", &manifests, &left)?;
    place.wait_applied("some")?;
    let owners =
        |name: &str| Ok::<_, anyhow::Error>(place.object("configmap", name)?["metadata"]["ownerReferences"].clone());
    ensure!(owners("left")?.is_null() && !owners("owned")?.is_null(), "{} {}", owners("left")?, owners("owned")?);
    place.work("some", &manifests, &json!({}))?;
    wait::until_true("that it is taken back", SOON, || Ok(!owners("left")?.is_null()))?;
    place.work("some", &manifests, &json!({"deleteOption": {"propagationPolicy": "Orphan"}}))?;
    wait::until_true("that all is let go", SOON, || Ok(owners("left")?.is_null() && owners("owned")?.is_null()))?;
    place.delete(&format!("{} some -n {cluster}", super::WORKS))?;
    ensure!(!place.object("configmap", "left")?.is_null() && !place.object("configmap", "owned")?.is_null());
    place.end(&[])
}

/// Values of any depth and number may be in a manifest.
pub fn unreadable(testbed: &Testbed) -> Result<()> {
    let cluster = "works-unreadable";
    let mut place = Place::start(testbed, cluster)?;
    let nested = (0..200).fold(json!(1), |inner, _| json!({"a": inner}));
    // Some 400 KiB of text.
    let many = json!(vec![json!({"a": 0}); 50_000]);
    for (name, values, why) in [("deep", nested, "recursion limit"), ("heavy", many, "more than 24 MiB")] {
        let mut manifest = config_map(cluster, name, &json!({}));
        manifest["x"] = values;
        place.work(name, &[manifest], &json!({}))?;
        told(testbed, cluster, name, why)?;
    }
    let good = |name: &str| place.work(name, &[config_map(cluster, name, &json!({"a": "b"}))], &json!({}));
    good("before")?;
    place.wait_applied("before")?;
    // Those that list them all hold nobody else up either.
    place.running.restart()?;
    let good = |name: &str| place.work(name, &[config_map(cluster, name, &json!({"a": "b"}))], &json!({}));
    good("after")?;
    place.wait_applied("after")?;
    ensure!(!place.object("configmap", "before")?.is_null() && !place.object("configmap", "after")?.is_null());
    ensure!(place.object("configmap", "deep")?.is_null(), "nothing is made of what cannot be read");
    testbed.hub.server.kubectl().ok(&format!("delete {} deep -n {cluster}", super::WORKS))?;
    place.end(&["heavy", "before", "after"])
}

/// By kubectl: it reads what is that deep.
fn told(testbed: &Testbed, cluster: &str, work: &str, why: &str) -> Result<()> {
    let condition = "jsonpath={.status.conditions[?(@.type==\"Applied\")].message}";
    wait::until(&format!("{work} to say why"), SOON, || {
        let arguments = ["get", super::WORKS, work, "-n", cluster, "-o", condition];
        let said = testbed.hub.server.kubectl().args(arguments).run()?.success()?;
        ensure!(said.contains(why), "{said}");
        Ok(())
    })
}
