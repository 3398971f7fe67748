//! Clusters that the part must not touch, or that cannot be reached.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;
use tokio::time::Instant;

use super::{APPLIED, GROUP, PLACE, Place, condition, config_map, hash, hash_of};
use crate::fixture::{SOON, apply, event, wait_logged};
use crate::rights::rendered;

/// Failed requests to an unreachable member, after which it rests for 16 s and more.
const TRIES: f64 = 5.0;
/// Time from a change of the cluster until the status of its work.
const WAKES: Duration = Duration::from_secs(8);

pub fn untouched(testbed: &Testbed) -> Result<()> {
    let (cluster, other) = ("works-fenced", "works-unfenced");
    let place = Place::start(testbed, cluster)?;
    place.register(other)?;
    place.work_in(other, "foreign", &[config_map(cluster, "foreign-map", &json!({"a": "b"}))], &json!({}))?;
    place.work("ours", &[config_map(cluster, "ours-map", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("ours")?;
    ensure!(testbed.member.has_seen("ours-map")?, "the audit log would not say it");
    ensure!(!testbed.member.has_seen("foreign-map")?, "the member was asked for it");
    // There is no other request, either. Both clusters lead to one member, whose log does not tell
    // them apart.
    let asked = |cluster: &str| {
        let series = format!("cluster=\"{cluster}\"");
        let name = "cluster_gateway_delivery_member_requests_total";
        let metrics = place.running.metrics()?;
        Ok::<_, anyhow::Error>(metrics.lines().any(|line| line.starts_with(name) && line.contains(&series)))
    };
    ensure!(asked(cluster)?, "the metrics would not say it");
    ensure!(!asked(other)?, "a request went to {other}");
    let work = place.read_in(other, "foreign")?;
    ensure!(work["status"].is_null() && work["metadata"]["finalizers"].is_null(), "{work}");
    // Once delivery is on, the work is ours.
    place.deliver_to(other, Some("push"))?;
    place.wait_in(other, "foreign", "Applied", "True/AppliedManifestWorkComplete")?;
    ensure!(asked(other)?);
    // Once it is off, everything stays, and changes are not applied.
    place.deliver_to(other, None)?;
    place.work_in(other, "foreign", &[config_map(cluster, "foreign-map", &json!({"a": "c"}))], &json!({}))?;
    place.work("ours", &[config_map(cluster, "ours-map", &json!({"a": "c"}))], &json!({}))?;
    place.wait_applied("ours")?;
    ensure!(place.object("configmap", "foreign-map")?["data"]["a"] == "b", "it was written");
    place.deliver_to(other, Some("push"))?;
    place.delete(&format!("{} foreign -n {other}", super::WORKS))?;
    place.delete(&format!("managedcluster {other}"))?;
    place.end(&["ours"])
}

/// With the policy that limits the controllers' token where they also stand in for registration.
pub fn guarded(testbed: &Testbed) -> Result<()> {
    let (cluster, name) = ("works-guarded", "works-limits");
    let place = Place::start(testbed, cluster)?;
    let values = "controllers.parts.manifestworks=true,controllers.ocmRegistration.enabled=true";
    let mut limits = rendered(testbed, PLACE, values)?;
    limits.retain(|object| object["metadata"]["name"].as_str().is_some_and(|name| name.ends_with("-limits")));
    ensure!(limits.len() == 2, "a policy and its binding: {limits:?}");
    for object in &mut limits {
        object["metadata"]["name"] = name.into();
        if object["spec"]["policyName"].is_string() {
            object["spec"]["policyName"] = name.into();
        }
    }
    apply(testbed, &limits)?;
    let map = |value: &str| [config_map(cluster, "guarded", &json!({"a": value}))];
    place.work("guarded", &map("b"), &json!({}))?;
    let me = format!("system:serviceaccount:{PLACE}:door-cluster-gateway-controllers");
    let spec = json!({"deleteOption": {"propagationPolicy": "Orphan"}});
    let other = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "guarded", "namespace": cluster}, "spec": spec});
    // Server-side apply needs only the right to patch.
    let query = "dryRun=All&fieldManager=kubectl&force=true&fieldValidation=Strict";
    let path = format!("/apis/{GROUP}/v1/namespaces/{cluster}/manifestworks/guarded?{query}");
    let headers = [("impersonate-user", &*me), ("content-type", "application/apply-patch+yaml")];
    wait::until("that they may not write it", SOON, || {
        let refused = testbed.hub.server.kubectl().send(&Method::PATCH, &path, &headers, &other)?;
        ensure!(refused.text().contains("the controllers write no works"), "{}: {}", refused.status, refused.text());
        Ok(())
    })?;
    place.work("guarded", &map("c"), &json!({}))?;
    place.wait_applied("guarded")?;
    place.delete(&format!("{} guarded -n {cluster}", super::WORKS))?;
    let kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings";
    place.delete(&format!("{kinds} {name}"))?;
    place.end(&[])
}

/// An agent that calls the hub by another URL is known by what it owns.
pub fn stranger(testbed: &Testbed) -> Result<()> {
    let cluster = "works-stranger";
    let place = Place::start(testbed, cluster)?;
    place.work("other", &[config_map(cluster, "other", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("other")?;
    let name = format!("{}-web", hash_of("https://another.example:6443"));
    let agents = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": name},
        "spec": {"hubHash": hash_of("https://another.example:6443"), "agentID": "klusterlet", "manifestWorkName": "web"}});
    testbed.member.server.apply(&[agents])?;
    let list = place.member().read(&format!("{APPLIED} {name}"))?;
    let mut map = config_map(cluster, "web", &json!({"a": "b"}));
    map["metadata"]["ownerReferences"] = json!([{"apiVersion": list["apiVersion"], "kind": list["kind"],
        "name": name, "uid": list["metadata"]["uid"]}]);
    testbed.member.server.apply(&[map])?;
    place.work("web", &[config_map(cluster, "web", &json!({"a": "b"}))], &json!({}))?;
    let told = wait::until("an Event", SOON, || event(testbed, cluster, "web", "ForeignAgent"))?;
    ensure!(told.contains(&name) && told.contains("--hub-url"), "{told}");
    place.wait_applied("web")?;
    // The object outlives the work: the agent owns it, too.
    place.delete(&format!("{} web -n {cluster}", super::WORKS))?;
    let owners = place.object("configmap", "web")?["metadata"]["ownerReferences"].clone();
    ensure!(owners.as_array().is_some_and(|owners| owners.len() == 1), "{owners}");
    place.member().delete(&format!("{APPLIED} {name}"))?;
    place.end(&["other"])
}

pub fn foreign(testbed: &Testbed) -> Result<()> {
    let cluster = "works-foreign";
    let mut place = Place::start(testbed, cluster)?;
    place.work("first", &[config_map(cluster, "first", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("first")?;
    let agents = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "AppliedManifestWork",
        "metadata": {"name": format!("{}-second", hash())},
        "spec": {"hubHash": hash(), "agentID": "klusterlet", "manifestWorkName": "second"}});
    testbed.member.server.apply(&[agents])?;
    place.work("second", &[config_map(cluster, "second", &json!({"a": "b"}))], &json!({}))?;
    let told = wait::until("an Event", SOON, || event(testbed, cluster, "second", "ForeignAgent"))?;
    ensure!(told.contains("klusterlet") && told.contains("adopt"), "{told}");
    ensure!(place.object("configmap", "second")?.is_null(), "it was applied beside the agent");
    let left = |count: f64| {
        let left = place.running.metric("cluster_gateway_delivery_foreign_works", "")?;
        ensure!((left - count).abs() < 0.5, "{left} works are left to others");
        Ok(())
    };
    wait::until("that it is counted", SOON, || left(1.0))?;
    place.deliver(Some("adopt"))?;
    place.wait_applied("second")?;
    wait::until("that none is any more", SOON, || left(0.0))?;
    let agent = |place: &Place<'_>| {
        let applied = place.applied("second")?;
        applied["spec"]["agentID"].as_str().map(str::to_owned).with_context(|| applied.to_string())
    };
    ensure!(agent(&place)?.starts_with("cluster-gateway"), "{}", agent(&place)?);
    let finalizers = place.applied("second")?["metadata"]["finalizers"].to_string();
    ensure!(finalizers.contains("applied-manifest-work-cleanup"), "it has none, as a klusterlet's end leaves it");
    // Adoption happens once: if the agent still runs, the part does not fight it.
    let back = json!({"spec": {"agentID": "klusterlet"}});
    let failures = || place.running.metric("cluster_gateway_controllers_failures_total", "manifestworks");
    let before = failures()?;
    place.member().patch(&format!("{APPLIED} {}-second", hash()), &back)?;
    wait::until_true("that it is the agent's again", SOON, || Ok(failures()? > before + 0.5))?;
    ensure!(agent(&place)? == "klusterlet", "it was taken twice");
    // A replica that starts with the annotation already set does not adopt again, either.
    place.running.restart()?;
    let failed = || place.running.metric("cluster_gateway_controllers_failures_total", "manifestworks");
    wait::until_true("that it is looked at again", SOON, || Ok(failed()? > 0.5))?;
    ensure!(agent(&place)? == "klusterlet", "it was taken again after a restart");
    place.deliver(Some("push"))?;
    place.deliver(Some("adopt"))?;
    wait::until_true("that it is taken again", SOON, || Ok(agent(&place)?.starts_with("cluster-gateway")))?;
    place.deliver(Some("push"))?;
    place.end(&["first", "second"])
}

pub fn closed(testbed: &Testbed) -> Result<()> {
    let (cluster, other) = ("works-open", "works-closed");
    let place = Place::with(testbed, cluster, ",controllers.manifestworks.clusters={works-open}")?;
    place.register(other)?;
    place.deliver_to(other, Some("push"))?;
    place.work_in(other, "shut", &[config_map(cluster, "shut", &json!({"a": "b"}))], &json!({}))?;
    let told = place.wait_in(other, "shut", "Applied", "False/AppliedManifestWorkFailed")?;
    ensure!(told.contains("forbidden"), "{told}");
    wait_logged(testbed, &["cluster=\"works-closed\" work=\"shut\" hop=\"caller\"", "is forbidden"])?;
    place.work("open", &[config_map(cluster, "open", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("open")?;
    place.delete(&format!("managedcluster {other}"))?;
    // An unreachable member changes no condition, and gets the wanted state when it is back.
    let before = place.read("open")?["status"].clone();
    let nowhere = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at("https://127.0.0.1:1");
    testbed.hub.register_member(cluster, &nowhere)?;
    place.work("open", &[config_map(cluster, "open", &json!({"a": "c"}))], &json!({}))?;
    let away = || place.running.metric("cluster_gateway_delivery_member_requests_total", "code=\"50");
    // After so many failures, the pause is long.
    wait::until_true("that it was asked", 3 * SOON, || Ok(away()? >= TRIES))?;
    ensure!(place.read("open")?["status"] == before, "{}", place.read("open")?["status"]);
    wait_logged(testbed, &["a cluster does not answer: ", "cluster=\"works-open\" hop=\"member\""])?;
    place.register(cluster)?;
    // The cluster changes, as it does when it is healthy again.
    place.annotate(&format!("managedcluster {cluster} healthy=again"))?;
    let healthy = Instant::now();
    place.wait_applied("open")?;
    ensure!(healthy.elapsed() < WAKES, "it woke after {:?}", healthy.elapsed());
    let applied = place.read("open")?;
    ensure!(condition(&applied["status"], "Applied")["observedGeneration"] == 2, "{applied}");
    ensure!(place.object("configmap", "open")?["data"]["a"] == "c");
    place.end(&["open"])
}
