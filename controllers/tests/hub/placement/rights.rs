//! The chart grants no right that the part would not miss, and all that it needs.
//!
//! `update` on `placements/finalizers` is for hubs that let nobody name an owner without it
//! (`OwnerReferencesPermissionEnforcement`), which this one is not.

use anyhow::Result;
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{GROUP, Place, cluster};
use crate::fixture::{SOON, apply};
use crate::rights::{grant, is_refused_to, nothing_refused, rendered, started_without};

const PART: &str = "controllers.parts.placement=true";
const PLACE: &str = "placement-less";
const SET: &str = "less";

pub fn less(testbed: &Testbed) -> Result<()> {
    let mut place = Place::start(testbed, PLACE)?;
    place.sets(&[SET])?;
    let names = ["less1", "less2"];
    apply(testbed, &names.map(|name| cluster(name, SET, &json!({}))))?;
    all_to_do(&place, 0)?;
    place.wait_chosen("app", &names)?;
    place.wait_chosen("new-0", &names[..1])?;
    place.wait_end(&format!("placementdecision foreign-0 -n {PLACE}"))?;
    nothing_refused(testbed, PLACE)?;
    place.running.stop()?;
    let objects = rendered(testbed, PLACE, PART)?;
    let kinds = [
        "placements",
        "placementdecisions",
        "managedclusters",
        "managedclustersets",
        "managedclustersetbindings",
        "addonplacementscores",
        "leases",
    ];
    let read = kinds.into_iter().flat_map(|resource| ["list", "watch"].map(|verb| (resource, verb)));
    let write = ["create", "patch", "delete"].map(|verb| ("placementdecisions", verb));
    let told = ["placements/status", "placementdecisions/status"].map(|resource| (resource, "patch"));
    for (number, (resource, verb)) in read.chain(write).chain(told).enumerate() {
        all_to_do(&place, number + 1)?;
        let mut running = started_without(testbed, PLACE, &objects, (resource, verb))?;
        let what = format!("that {verb} on {resource} is missed");
        wait::until_true(&what, SOON, || is_refused_to(testbed, PLACE, verb, resource))?;
        running.stop()?;
    }
    grant(testbed, PLACE, &objects)?;
    place.running.restart_stopped()?;
    place.end(&names, &[SET])
}

/// Has a Placement begin, a decision put right, and a foreign one removed.
fn all_to_do(place: &Place<'_>, number: usize) -> Result<()> {
    place.place("app", &json!({"clusterSets": [SET]}))?;
    place.place(&format!("new-{number}"), &json!({"clusterSets": [SET], "numberOfClusters": 1}))?;
    let decision = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "PlacementDecision",
            "metadata": {"name": name, "namespace": PLACE,
                "labels": {format!("{GROUP}/placement"): "app", "by-hand": format!("{number}")}}})
    };
    // Made by hand, if the part has not made it yet, and marked by hand, which is put right.
    apply(place.testbed, &[decision(&format!("foreign-{number}")), decision("app-decision-1")])
}
