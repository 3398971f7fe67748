//! The objects of a work are on the member, and those that it no longer contains are not.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{FINALIZER, Place, TOLD, condition, config_map, hash, said};
use crate::fixture::{SOON, definition, print, wait_logged};

/// Time from a change on a member until the hub reports it: two seconds, less the pause between two
/// reads.
const FACT: Duration = Duration::from_millis(1800);

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
    // In reverse: the controllers choose the order.
    let mut manifests = [
        widget,
        deployment,
        service,
        config_map(own, "settings", &json!({"a": "b"})),
        definition("works.example", "Everything", "v1", "Cluster"),
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own, "uid": "nobody's"}}),
    ];
    let web = json!({"resourceIdentifier": {"group": "apps", "resource": "deployments", "namespace": own, "name": "*"},
        "feedbackRules": [{"type": "WellKnownStatus"}]});
    let configs = json!({"manifestConfigs": [web]});
    place.work("all", &manifests, &configs)?;
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
    in_order(&place, own)?;
    running(&place, own, 2)?;
    let mut replicas = 2;
    wait::timely("a replica that is ready, until the hub has it", FACT, || {
        replicas += 1;
        manifests[1]["spec"]["replicas"] = replicas.into();
        place.work("all", &manifests, &configs)?;
        let took = told_of(&place, own, replicas)?;
        print(&format!("the hub had {replicas} replicas {took:.1?} after the member"));
        Ok(took)
    })?;
    running(&place, own, replicas)?;
    place.end(&["all"])
}

/// A rank begins once the rank before is answered, by the member's audit log.
fn in_order(place: &Place<'_>, own: &str) -> Result<()> {
    const RANKS: [&[&str]; 5] = [
        &["namespaces", "customresourcedefinitions"],
        &["configmaps"],
        &["services"],
        &["deployments"],
        &["everythings"],
    ];
    let mut entries = place.testbed.member.seen(own)?;
    entries.extend(place.testbed.member.seen("everythings")?);
    let text =
        |entry: &Value, pointer: &str| entry.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    entries.retain(|entry| entry["verb"] == "create" && entry["responseStatus"]["code"] == 201);
    let mut answered = String::new();
    for rank in RANKS {
        let own: Vec<&Value> =
            entries.iter().filter(|entry| rank.contains(&text(entry, "/objectRef/resource").as_str())).collect();
        ensure!(own.len() == rank.len(), "{rank:?}: {own:?}");
        let begun = own.iter().map(|entry| text(entry, "/requestReceivedTimestamp")).min().unwrap_or_default();
        ensure!(begun > answered, "{rank:?} began at {begun}, and what is before it was answered at {answered}");
        answered = own.iter().map(|entry| text(entry, "/stageTimestamp")).max().unwrap_or_default();
    }
    Ok(())
}

/// `count` pods of the Deployment run on nodes of the member.
fn running(place: &Place<'_>, own: &str, count: usize) -> Result<()> {
    let pods = place.member().read(&format!("pods -n {own} -l app=web"))?;
    let pods = pods["items"].as_array().cloned().unwrap_or_default();
    let is_running = |pod: &&Value| pod["status"]["phase"] == "Running" && pod["spec"]["nodeName"].is_string();
    ensure!(pods.iter().filter(is_running).count() == count, "{pods:?}");
    Ok(())
}

/// The time from the member's report that `replicas` are ready until the hub has it.
fn told_of(place: &Place<'_>, own: &str, replicas: usize) -> Result<Duration> {
    let fact = wait::until(&format!("{replicas} to be ready"), SOON, || {
        let found = place.member().read(&format!("deployment web -n {own}"))?;
        ensure!(found["status"]["readyReplicas"] == replicas, "{}", found["status"]);
        Ok(Instant::now())
    })?;
    wait::until(&format!("{replicas} to be told"), SOON, || {
        let values = place.values("all", 1)?;
        ensure!(values["ReadyReplicas"] == replicas, "{values}");
        Ok(())
    })?;
    Ok(fact.elapsed())
}

/// The `AppliedManifestWork` lists all objects, and owns each.
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
    let logged = |object: &str, hop: &str, why: &str| {
        let line = format!("cluster=\"{cluster}\" work=\"mixed\" object=\"{object}\" hop=\"{hop}\"");
        wait_logged(testbed, &["an object is not applied: ", why, &line])
    };
    logged("services works-beside/refused", "member", "spec.ports")?;
    logged("configmaps works-nowhere/homeless", "member", "not found")?;
    logged("configmaps works-beside/good", "controllers", "duplicate")?;
    // A definition that comes later counts within ten seconds, with no edit.
    let kind = definition("late.example", "Late", "v1", "Cluster");
    testbed.member.server.apply(&[kind])?;
    wait::until_true("the late one", TOLD, || Ok(!place.object("lates.late.example", "late")?.is_null()))?;
    place.wait_manifest("mixed", 1, "Applied", "True/AppliedManifestComplete")?;
    // A kind that is removed affects no other kind's objects.
    place.member().delete("crd lates.late.example")?;
    wait::until("that it is missed", 2 * SOON, || {
        let work = place.read("mixed")?;
        let manifest = &work["status"]["resourceStatus"]["manifests"][1];
        let (applied, available) = (condition(manifest, "Applied"), condition(manifest, "Available"));
        ensure!(said(available) == "Unknown/IncompleteResourceMeta", "{available}");
        ensure!(said(applied) == "False/AppliedManifestFailed", "{applied}");
        let why = "Failed to apply manifest: the server doesn't have a resource type \"Late\"";
        ensure!(applied["message"] == why, "{applied}");
        Ok(())
    })?;
    ensure!(place.object("configmap", "good")?["data"]["a"] == "b", "another object went with it");
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
    place.work("some", &manifests, &json!({}))?;
    let is_back = || Ok(!owners("left")?.is_null() && !owners("owned")?.is_null());
    wait::until_true("that all is taken back", SOON, is_back)?;
    // Deletion of a work removes the objects that it owns, and leaves those that it orphans.
    place.work("some", &manifests, &left)?;
    wait::until_true("that one is let go", SOON, || Ok(owners("left")?.is_null()))?;
    let uid = place.object("configmap", "left")?["metadata"]["uid"].clone();
    place.delete(&format!("{} some -n {cluster}", super::WORKS))?;
    ensure!(place.object("configmap", "owned")?.is_null(), "what it owned is left behind");
    ensure!(place.object("configmap", "left")?["metadata"]["uid"] == uid, "what it left was taken");
    // Another work takes over the existing objects, and leaves all of them.
    place.work("all", &manifests, &json!({"deleteOption": {"propagationPolicy": "Orphan"}}))?;
    place.wait_applied("all")?;
    place.delete(&format!("{} all -n {cluster}", super::WORKS))?;
    ensure!(place.object("configmap", "left")?["metadata"]["uid"] == uid, "an orphan is another one");
    ensure!(!place.object("configmap", "owned")?.is_null(), "an orphan is gone");
    place.end(&[])
}

/// Values in a manifest may have any depth and number.
pub fn unreadable(testbed: &Testbed) -> Result<()> {
    let cluster = "works-unreadable";
    let mut place = Place::start(testbed, cluster)?;
    let nested = (0..200).fold(json!(1), |inner, _| json!({"a": inner}));
    // About 400 KiB of text.
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
    // After a restart, which lists all works, they block no others, either.
    place.running.restart()?;
    let good = |name: &str| place.work(name, &[config_map(cluster, name, &json!({"a": "b"}))], &json!({}));
    good("after")?;
    place.wait_applied("after")?;
    ensure!(!place.object("configmap", "before")?.is_null() && !place.object("configmap", "after")?.is_null());
    ensure!(place.object("configmap", "deep")?.is_null(), "nothing is made of what cannot be read");
    testbed.hub.server.kubectl().ok(&format!("delete {} deep -n {cluster}", super::WORKS))?;
    place.end(&["heavy", "before", "after"])
}

/// Reads by kubectl, which accepts such a depth.
fn told(testbed: &Testbed, cluster: &str, work: &str, why: &str) -> Result<()> {
    let condition = "jsonpath={.status.conditions[?(@.type==\"Applied\")].message}";
    wait::until(&format!("{work} to say why"), SOON, || {
        let arguments = ["get", super::WORKS, work, "-n", cluster, "-o", condition];
        let said = testbed.hub.server.kubectl().args(arguments).run()?.success()?;
        ensure!(said.contains(why), "{said}");
        Ok(())
    })
}
