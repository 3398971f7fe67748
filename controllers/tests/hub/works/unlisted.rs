//! Objects that are removed by hand from the list of applied objects are neither forgotten nor left
//! behind.

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{APPLIED, Place, TOLD, WORKS, condition, config_map, hash};
use crate::fixture::SOON;

pub fn by_hand(testbed: &Testbed) -> Result<()> {
    let cluster = "works-unlisted";
    let mut place = Place::start(testbed, cluster)?;
    let map = |name: &str| config_map(cluster, name, &json!({"a": "b"}));
    place.work("kept", &[map("a"), map("b"), map("c")], &json!({}))?;
    place.wait_applied("kept")?;
    let uids = wait_listed(&place, "kept", &["a", "b", "c"])?;
    strip(&place, "kept")?;
    ensure!(wait_listed(&place, "kept", &["a", "b", "c"])? == uids, "they are others");
    // Removed from the list and from the work, while the controllers are stopped.
    place.running.stop()?;
    strip(&place, "kept")?;
    place.work("kept", &[map("b"), map("c")], &json!({}))?;
    place.running.restart_stopped()?;
    wait::until_true("the end of what is not wanted", SOON, || Ok(place.object("configmap", "a")?.is_null()))?;
    ensure!(wait_listed(&place, "kept", &["b", "c"])? == uids[1..], "what stays is another one");
    ended(&mut place)?;
    place.end(&["kept"])
}

/// Removed from the list before the work is deleted.
fn ended(place: &mut Place<'_>) -> Result<()> {
    let mut held = config_map(place.cluster, "held", &json!({"a": "b"}));
    held["metadata"]["finalizers"] = json!(["works.example/held"]);
    place.work("gone", &[config_map(place.cluster, "d", &json!({"a": "b"})), held], &json!({}))?;
    place.wait_applied("gone")?;
    wait_listed(place, "gone", &["d", "held"])?;
    place.running.stop()?;
    strip(place, "gone")?;
    place.delete(&format!("{WORKS} gone -n {} --wait=false", place.cluster))?;
    place.running.restart_stopped()?;
    let left = format!("1 objects are not gone yet, configmaps {}/held first", place.cluster);
    wait::until("what is left to be told", SOON, || {
        let work = place.read("gone")?;
        let deleting = condition(&work["status"], "Deleting").clone();
        ensure!(deleting["message"].as_str().is_some_and(|told| told.ends_with(&left)), "{work}");
        Ok(())
    })?;
    ensure!(place.object("configmap", "d")?.is_null(), "it is left behind");
    let free = json!({"metadata": {"finalizers": null}});
    place.member().patch(&format!("configmap held -n {}", place.cluster), &free)?;
    place.wait_gone("gone")
}

/// Empties the list of applied objects.
fn strip(place: &Place<'_>, work: &str) -> Result<()> {
    let nothing = json!({"status": {"appliedResources": []}});
    place.member().patch(&format!("{APPLIED} {}-{work} --subresource=status", hash()), &nothing).map(drop)
}

/// Waits until exactly these are listed; returns their UIDs.
fn wait_listed(place: &Place<'_>, work: &str, names: &[&str]) -> Result<Vec<String>> {
    wait::until(&format!("{names:?} to be listed"), TOLD, || {
        let listed = place.applied(work)?["status"]["appliedResources"].as_array().cloned().unwrap_or_default();
        let found: Vec<&Value> = listed.iter().map(|one| &one["name"]).collect();
        ensure!(found == names, "{found:?}");
        let uid = |one: &Value| one["uid"].as_str().map(str::to_owned).context("no UID");
        listed.iter().map(uid).collect()
    })
}
