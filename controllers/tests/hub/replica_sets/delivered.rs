//! Beside the part that delivers to a member: what it reports of works, and what becomes of their
//! objects.

use anyhow::{Context as _, Result, ensure};
use hub_tests::hub::MemberSecret;
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{CLUSTER, NAME, PART, Place, WORK, all_at_once, of};
use crate::fixture::{SOON, apply, condition, namespace};
use crate::part::Part;
use crate::{registration, works};

const PLACE: &str = "sets-given";
/// One member under two names.
const CLUSTERS: [&str; 2] = ["sets-given1", "sets-given2"];

pub fn both_ways(testbed: &Testbed) -> Result<()> {
    let values = format!("{PART},controllers.parts.manifestworks=true,controllers.rolloutNeedsRules=true");
    let alone = vec![turns::alone(&[registration::ALONE, super::ALONE, works::ALONE])];
    let place = Place { part: Part::install(testbed, PLACE, &values, alone)? };
    place.wait_to_work(NAME)?;
    for cluster in CLUSTERS {
        let managed = json!({"apiVersion": format!("{CLUSTER}/v1"), "kind": "ManagedCluster",
            "metadata": {"name": cluster, "annotations": {"cluster.core.oam.dev/delivery": "push"}},
            "spec": {"hubAcceptsClient": false}});
        apply(testbed, &[namespace(cluster), managed])?;
        let secret = MemberSecret::with_token(&testbed.member.server, &testbed.member_token);
        testbed.hub.register_member(cluster, &secret)?;
    }
    swapped(&place)?;
    needs_rules(&place)?;
    place.delete(&format!("managedclusters {}", CLUSTERS.join(" ")))?;
    place.end()
}

/// Another Placement chooses the same cluster: the objects of the set's work stay on the member.
fn swapped(place: &Place<'_>) -> Result<()> {
    for placement in ["a", "b"] {
        place.choose(placement, &[("", &CLUSTERS[..1])])?;
    }
    place.set("app", "1", &all_at_once("a"))?;
    wait_applied(place, "a")?;
    let uid = || -> Result<Value> {
        let object = place.testbed.member.server.read("configmap app -n default")?;
        ensure!(object["metadata"]["deletionTimestamp"].is_null(), "{object}");
        Ok(object["metadata"]["uid"].clone())
    };
    let before = uid()?;
    ensure!(before.is_string(), "it is not there");
    place.set("app", "1", &all_at_once("b"))?;
    wait_applied(place, "b")?;
    ensure!(uid()? == before, "the workload left its member");
    let told = place.wait_event("app", "WorksHandedOver")?;
    ensure!(told.starts_with(&format!("Placement b takes {} over from a: ", CLUSTERS[0])), "{told}");
    end_set(place)?;
    wait::until_true("the end of the object", SOON, || {
        Ok(place.testbed.member.server.read("configmap app -n default")?.is_null())
    })
}

/// Waits until the set has one work, which is of this Placement and applied.
fn wait_applied(place: &Place<'_>, placement: &str) -> Result<()> {
    wait::until(&format!("the work of {placement} alone"), SOON, || {
        let works = place.works("app")?;
        let [work] = &works[..] else { anyhow::bail!("{} works", works.len()) };
        ensure!(work["metadata"]["labels"][format!("{WORK}/placementname")] == placement, "{work}");
        ensure!(condition(&work["status"], "Applied")["status"] == "True", "{work}");
        Ok(())
    })
}

/// As in upstream, a rollout without a rule waits after its first batch, because nothing reports
/// its progress.
fn needs_rules(place: &Place<'_>) -> Result<()> {
    place.choose("p", &[("", &CLUSTERS)])?;
    let slow = json!([{"name": "p", "rolloutStrategy": {"type": "Progressive", "progressive": {"maxConcurrency": 1}}}]);
    place.set("app", "1", &slow)?;
    wait::until_true("that it is counted", SOON, || {
        let summary = place.read("app")?["status"]["summary"].clone();
        Ok(summary["applied"] == 1 && summary["available"] == 1)
    })?;
    let works = place.works("app")?;
    let work = works.first().context("a work")?;
    ensure!(works.len() == 1 && of(work) == CLUSTERS[0], "it goes on without a rule");
    ensure!(condition(&work["status"], "Progressing").is_null(), "{}", work["status"]);
    end_set(place)
}

fn end_set(place: &Place<'_>) -> Result<()> {
    place.delete(&format!("manifestworkreplicaset app -n {PLACE}"))?;
    place.wait_works("app", &[]).map(drop)
}
