//! Two works that share a name on one member, or an object.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::json;

use super::{APPLIED, Place, WORKS, config_map, hash};
use crate::fixture::{SOON, event};

/// Time until two works have changed an object back often enough for a report.
const CONTESTED: Duration = Duration::from_mins(2);

/// The agent that keeps the objects of the work `web`.
fn keeper(place: &Place<'_>) -> Result<String> {
    let applied = place.applied("web")?;
    applied["spec"]["agentID"].as_str().map(str::to_owned).with_context(|| applied.to_string())
}

fn wait_keeper(place: &Place<'_>, cluster: &str) -> Result<()> {
    wait::until(&format!("{cluster} to keep it"), SOON, || {
        let keeper = keeper(place)?;
        ensure!(keeper.ends_with(cluster), "{keeper} does");
        Ok(())
    })
}

pub fn one_member(testbed: &Testbed) -> Result<()> {
    let (cluster, other) = ("works-one", "works-two");
    let place = Place::start(testbed, cluster)?;
    place.register(other)?;
    place.deliver_to(other, Some("push"))?;
    let map = |name: &str| [config_map(cluster, name, &json!({"a": "b"}))];
    place.work("web", &map("first"), &json!({}))?;
    place.wait_applied("web")?;
    place.work_in(other, "web", &map("second"), &json!({}))?;
    let told = wait::until("an Event", SOON, || event(testbed, other, "web", "ForeignAgent"))?;
    ensure!(told.contains(&format!("kept for cluster \"{cluster}\"")), "{told}");
    let first = place.object("configmap", "first")?;
    ensure!(place.object("configmap", "second")?.is_null(), "each takes away what the other applied");
    // The ID as an earlier version wrote it. The cluster that owns the listed objects takes the
    // list over.
    let id = keeper(&place)?;
    let unnamed = id.strip_suffix(&format!("-{cluster}")).with_context(|| id.clone())?;
    place.member().patch(&format!("{APPLIED} {}-web", hash()), &json!({"spec": {"agentID": unnamed}}))?;
    wait_keeper(&place, cluster)?;
    // Deletion of the work that was kept off removes nothing.
    place.delete(&format!("{WORKS} web -n {other}"))?;
    ensure!(place.object("configmap", "first")? == first, "it was written, or is gone");
    ensure!(keeper(&place)? == id);
    // After adoption, the objects belong to the other cluster.
    place.work_in(other, "web", &map("second"), &json!({}))?;
    place.deliver(None)?;
    place.deliver_to(other, Some("adopt"))?;
    wait_keeper(&place, other)?;
    place.wait_in(other, "web", "Applied", "True/AppliedManifestWorkComplete")?;
    wait::until_true("what is not its own to go", SOON, || Ok(place.object("configmap", "first")?.is_null()))?;
    place.deliver_to(other, Some("push"))?;
    place.delete(&format!("{WORKS} web -n {other}"))?;
    ensure!(place.applied("web")?.is_null(), "it is still listed");
    place.delete(&format!("managedcluster {other}"))?;
    place.deliver(Some("push"))?;
    place.end(&["web"])
}

pub fn at_odds(testbed: &Testbed) -> Result<()> {
    let cluster = "works-at-odds";
    let place = Place::start(testbed, cluster)?;
    let works = ["one", "other"];
    for work in works {
        place.work(work, &[config_map(cluster, "odd", &json!({"a": work}))], &json!({}))?;
    }
    for (work, rival) in [(works[0], works[1]), (works[1], works[0])] {
        let applied = format!("AppliedManifestWork {}-{rival}", hash());
        let note = wait::until("an Event", CONTESTED, || event(testbed, cluster, work, "ObjectContested"))?;
        ensure!(note.contains(&applied), "{note}");
        wait::until("a message", SOON, || {
            let told = place.wait_manifest(work, 0, "Applied", "True/AppliedManifestComplete")?;
            ensure!(told.contains(&applied), "{told}");
            Ok(())
        })?;
    }
    place.end(&works)
}
