//! Each right that the chart grants is used, and the part needs no others.
//!
//! `update` on `placements/finalizers` is for hubs that require it of those who name an owner
//! (`OwnerReferencesPermissionEnforcement`); this hub does not.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{GROUP, Place, cluster};
use crate::fixture::{SOON, apply};
use crate::rights::used::{events, none_idle, right};
use crate::rights::{grant, is_refused_to, rendered, started_without};

const PART: &str = "controllers.parts.placement=true";
const PLACE: &str = "audited-placement";
const SET: &str = "less";

pub fn used(testbed: &Testbed) -> Result<()> {
    let mark = testbed.audit.mark()?;
    let mut place = Place::start(testbed, PLACE)?;
    place.sets(&[SET])?;
    let names = ["less1", "less2"];
    apply(testbed, &names.map(|name| cluster(name, SET, &json!({}))))?;
    // A choice, a decision that is put right, and a foreign decision that is deleted.
    place.place("app", &json!({"clusterSets": [SET]}))?;
    place.place("one", &json!({"clusterSets": [SET], "numberOfClusters": 1}))?;
    let decision = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "PlacementDecision",
            "metadata": {"name": name, "namespace": PLACE,
                "labels": {format!("{GROUP}/placement"): "app", "by-hand": "yes"}}})
    };
    place.wait_chosen("app", &names)?;
    place.wait_chosen("one", &names[..1])?;
    apply(testbed, &[decision("foreign"), decision("app-decision-1")])?;
    place.wait_end(&format!("placementdecision foreign -n {PLACE}"))?;
    // After the deletion of an object, the part checks whether its kind was deleted.
    place.delete("managedcluster less2")?;
    place.wait_chosen("app", &names[..1])?;
    let objects = rendered(testbed, PLACE, PART)?;
    let beside = BTreeSet::from([right(GROUP, "placements/finalizers", "update")]);
    none_idle(testbed, PLACE, &objects, mark, &(&events() | &beside))?;
    place.running.stop()?;

    let without = ("placementdecisions", "create");
    let mut running = started_without(testbed, PLACE, &objects, without)?;
    place.place("late", &json!({"clusterSets": [SET]}))?;
    wait::until_true("that it is missed", SOON, || is_refused_to(testbed, PLACE, without.1, without.0))?;
    ensure!(place.decisions("late")?.is_empty(), "the hub refused it");
    ensure!(place.chosen("app")? == names[..1], "what was decided is gone");
    running.stop()?;
    grant(testbed, PLACE, &objects)?;
    place.running.restart_stopped()?;
    place.wait_chosen("late", &names[..1])?;
    place.end(&names, &[SET])
}
