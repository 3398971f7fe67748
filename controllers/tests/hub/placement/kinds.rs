//! A hub that lacks a kind is waited for.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use serde_json::json;

use super::{GROUP, Place, cluster, prioritizers};
use crate::fixture::{apply, kinds};

pub fn late(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-late-kinds")?;
    place.sets(&["late-kinds"])?;
    apply(testbed, &["late-kind1", "late-kind2"].map(|name| cluster(name, "late-kinds", &json!({}))))?;
    let scores = format!("addonplacementscores.{GROUP}");
    place.ok(&format!("delete crd placements.{GROUP} placementdecisions.{GROUP} {scores}"))?;
    // While it runs, and for one that starts then.
    let mut place = place;
    place.running.restart()?;
    define(&place, "cluster/v1beta1/0000_0")?;
    let spec = json!({"numberOfClusters": 1, "clusterSets": ["late-kinds"],
        "prioritizerPolicy": prioritizers::by_load()});
    place.place("one", &spec)?;
    // Nobody waits for scores.
    place.wait_chosen("one", &["late-kind1"])?;
    ensure!(place.running.get("/livez")?.contains("ok"), "it lives");
    define(&place, "cluster/v1alpha1/0000_05")?;
    prioritizers::score(&place, "late-kind2", 40, None)?;
    place.wait_chosen("one", &["late-kind2"])?;
    place.end(&["late-kind1", "late-kind2"], &["late-kinds"])
}

fn define(place: &Place<'_>, files: &str) -> Result<()> {
    let kubectl = place.testbed.hub.server.kubectl();
    let definitions = kinds("open-cluster-management.io/api", &[files])?;
    kubectl.args(["apply", "--server-side", "-f", "-"]).stdin(definitions).run()?.success()?;
    kubectl.ok("wait --for=condition=Established crd --all --timeout=30s").map(drop)
}
