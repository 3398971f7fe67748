//! Governance, as the documentation shows it: a read-only set of works reports which clusters lack
//! an object, and the same set creates it once its strategy enforces.

use std::time::Duration;

use anyhow::{Result, ensure};
use hub_tests::wait;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::page::{blocks, run};
use super::{Fleet, NAMES, condition};
use crate::fixture::SOON;

const DELIVERY: &str = include_str!("../../../../docs/delivery.md");
/// The strategy that the page shows, and the one that it gives for enforcing.
const STRATEGIES: [&str; 2] = ["{type: ReadOnly}", "{type: ServerSideApply, serverSideApply: {force: true}}"];
/// Time until a change by hand is undone.
const UNDONE: Duration = Duration::from_secs(5);

pub fn informs_then_enforces(fleet: &Fleet<'_>) -> Result<()> {
    let [without, with, _] = NAMES;
    for name in &NAMES[1..] {
        fleet.member(name).apply(&[object()])?;
    }
    let before = fleet.object(with, "configmap audit")?;
    let [shown] = blocks(DELIVERY, "## Governance")?[..] else { anyhow::bail!("one block that is run") };
    run(fleet, shown)?;
    fleet.wait_work("audit", without, "Available", "False/ResourcesNotAvailable")?;
    for name in &NAMES[1..] {
        fleet.wait_work("audit", name, "Available", "True/ResourcesAvailable")?;
        fleet.wait_work("audit", name, "Compliant", "True/ConditionRulesAggregated")?;
    }
    ensure!(
        condition(&fleet.work("audit", without)?["status"], "Compliant")["status"] != "True",
        "it lacks the object"
    );
    ensure!(fleet.object(without, "configmap audit")?.is_null(), "what is only asked for was made");
    ensure!(fleet.object(with, "configmap audit")? == before, "what is only read was touched");
    // A change there is reported, and not undone.
    let loose = change(fleet, with, "loose")?;
    fleet.wait_work("audit", with, "Compliant", "False/ConditionRulesAggregated")?;
    ensure!(fleet.object(with, "configmap audit")?["metadata"]["resourceVersion"] == loose, "it was touched");

    let [looks, enforces] = STRATEGIES;
    ensure!(shown.contains(looks) && shown.contains(enforces), "other strategies are shown: {shown}");
    run(fleet, &shown.replacen(looks, enforces, 1))?;
    for name in NAMES {
        wait_level(fleet, name)?;
        fleet.wait_work("audit", name, "Compliant", "True/ConditionRulesAggregated")?;
    }
    change(fleet, with, "loose")?;
    let changed = Instant::now();
    wait_level(fleet, with)?;
    let took = changed.elapsed();
    ensure!(took < UNDONE, "a change by hand was undone after {took:?}");
    fleet.delete("manifestworkreplicaset audit -n default")?;
    fleet.delete("placement everywhere -n default")
}

fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "audit", "namespace": "default"},
        "data": {"level": "strict"}})
}

/// Changes the object by hand on a member; returns its new version.
fn change(fleet: &Fleet<'_>, name: &str, level: &str) -> Result<Value> {
    let changed = fleet.member(name).patch("configmap audit -n default", &json!({"data": {"level": level}}))?;
    Ok(changed["metadata"]["resourceVersion"].clone())
}

fn wait_level(fleet: &Fleet<'_>, name: &str) -> Result<()> {
    wait::until(&format!("{name} to have what is wanted"), SOON, || {
        let found = fleet.object(name, "configmap audit")?;
        ensure!(found["data"]["level"] == "strict", "{found}");
        Ok(())
    })
}
