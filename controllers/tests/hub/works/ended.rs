//! Deletion of a work.

use anyhow::{Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{Place, WORKS, condition, config_map};
use crate::fixture::SOON;

pub fn deleted(testbed: &Testbed) -> Result<()> {
    let cluster = "works-deleted";
    let place = Place::start(testbed, cluster)?;
    let map = |name: &str| config_map(cluster, name, &json!({"a": "b"}));
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["works.example/held"]);
    place.work("gone", &[map("a"), map("b"), held], &json!({}))?;
    place.work("stays", &[map("c")], &json!({}))?;
    place.wait_applied("gone")?;
    place.wait_applied("stays")?;
    place.delete(&format!("{WORKS} gone -n {cluster} --wait=false"))?;
    for name in ["a", "b"] {
        wait::until_true("the end of its objects", SOON, || Ok(place.object("configmap", name)?.is_null()))?;
    }
    wait::until("what is left to be told", SOON, || {
        let work = place.read("gone")?;
        let deleting = condition(&work["status"], "Deleting").clone();
        let left = format!("1 objects are not gone yet, configmaps {cluster}/held first");
        ensure!(deleting["message"].as_str().is_some_and(|told| told.ends_with(&left)), "{deleting}");
        Ok(())
    })?;
    let left = place.applied("gone")?;
    ensure!(!left["metadata"]["deletionTimestamp"].is_null(), "{left}");
    ensure!(!place.read("gone")?.is_null(), "one of its objects is still there");
    wait::until("what is left to be listed", SOON, || {
        let resources = place.applied("gone")?["status"]["appliedResources"].clone();
        ensure!(resources.as_array().is_some_and(|all| all.len() == 1 && all[0]["name"] == "held"), "{resources}");
        Ok(())
    })?;
    let free = json!({"metadata": {"finalizers": null}});
    place.member().patch(&format!("configmap held -n {cluster}"), &free)?;
    place.wait_gone("gone")?;
    ensure!(place.applied("gone")?.is_null(), "what listed them is still there");
    ensure!(!place.object("configmap", "c")?.is_null(), "another work's object is gone");
    place.end(&["stays"])
}

pub fn away(testbed: &Testbed) -> Result<()> {
    let cluster = "works-away";
    let place = Place::start(testbed, cluster)?;
    place.work("waits", &[config_map(cluster, "a", &json!({"a": "b"}))], &json!({}))?;
    place.wait_applied("waits")?;
    let nowhere = MemberSecret::with_token(&testbed.member.server, &testbed.member_token).at("https://127.0.0.1:1");
    testbed.hub.register_member(cluster, &nowhere)?;
    place.delete(&format!("{WORKS} waits -n {cluster} --wait=false"))?;
    let told = wait::until("that it says so", SOON, || {
        let work = place.read("waits")?;
        let deleting = condition(&work["status"], "Deleting").clone();
        ensure!(deleting["message"].as_str().is_some_and(|told| told.contains("does not answer")), "{work}");
        Ok(work)
    })?;
    let applied = condition(&told["status"], "Applied");
    ensure!(applied["status"] == "True", "what was applied is applied: {applied}");
    ensure!(!place.object("configmap", "a")?.is_null());
    // The member is back.
    place.register(cluster)?;
    wait::until_true("its end", 4 * SOON, || Ok(place.read("waits")?.is_null()))?;
    ensure!(place.object("configmap", "a")?.is_null(), "its object is left behind");
    place.end(&[])
}
