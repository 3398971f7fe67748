//! Why a Placement is satisfied, or not.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use serde_json::json;

use super::{Place, binding, cluster, set};
use crate::fixture::apply;

const SATISFIED: &str = "PlacementSatisfied";

pub fn each(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-reasons")?;
    place.place("one", &json!({"numberOfClusters": 3, "clusterSets": ["reasons-b"]}))?;
    let wait = |expected: &str| place.wait_condition("one", SATISFIED, expected);
    ensure!(wait("False/NoManagedClusterSetBindings")?.starts_with("No valid ManagedClusterSetBindings"));
    place.sets(&["reasons-a"])?;
    ensure!(wait("False/NoIntersection")? == "None of ManagedClusterSets [reasons-b] is bound to placement namespace");
    place.sets(&["reasons-b"])?;
    ensure!(wait("False/AllManagedClusterSetsEmpty")?.contains("[reasons-b] have no member"));
    let tainted = |effect: &str| {
        let mut tainted = cluster("reason1", "reasons-b", &json!({}));
        tainted["spec"]["taints"] = json!([{"key": "k", "effect": effect, "timeAdded": null}]);
        tainted
    };
    apply(testbed, &[tainted("NoSelect")])?;
    wait("False/NoManagedClusterMatched")?;
    // This effect is always tolerated.
    apply(testbed, &[tainted("PreferNoSelect")])?;
    ensure!(wait("False/NotAllDecisionsScheduled")? == "2 cluster decisions unscheduled");
    place.wait_chosen("one", &["reason1"])?;
    place.place("one", &json!({"numberOfClusters": 1, "clusterSets": ["reasons-b"]}))?;
    ensure!(wait("True/AllDecisionsScheduled")? == "All cluster decisions scheduled");
    let configured = place.wait_condition("one", "PlacementMisconfigured", "False/Succeedconfigured")?;
    ensure!(configured == "Placement configurations check pass", "{configured}");
    let spread = json!({"numberOfClusters": 1, "clusterSets": ["reasons-b"],
        "spreadPolicy": {"spreadConstraints": [{"topologyKey": "zone", "topologyKeyType": "Label"}]}});
    place.place("one", &spread)?;
    hub_tests::wait::until("what is ignored", crate::fixture::SOON, || {
        let message = place.condition("one", "PlacementMisconfigured")?["message"].clone();
        let message = message.as_str().unwrap_or_default();
        ensure!(message.ends_with("; ignored: spec.spreadPolicy"), "{message}");
        Ok(())
    })?;
    place.end(&["reason1"], &["reasons-a", "reasons-b"])
}

pub fn late_set(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-late")?;
    apply(testbed, &[binding(place.name, "late"), cluster("late1", "late", &json!({}))])?;
    place.place("one", &json!({}))?;
    place.wait_condition("one", SATISFIED, "False/NoManagedClusterSetBindings")?;
    place.wait_chosen("one", &[])?;
    apply(testbed, &[set("late")])?;
    place.wait_chosen("one", &["late1"])?;
    place.end(&["late1"], &["late"])
}
