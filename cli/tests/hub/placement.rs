//! `placement explain`, on a hub without a scheduler.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::kubectl::Kubectl;
use hub_tests::screens::Screens;
use hub_tests::testbed::Testbed;
use hub_tests::{tools, wait};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, clusters, clusters_as, ended, hub_user, namespace, rule, test};

const GROUP: &str = "cluster.open-cluster-management.io";
const SOON: Duration = Duration::from_secs(20);
const FILES: [&str; 4] =
    ["cluster/v1/0000_00", "cluster/v1alpha1/0000_05", "cluster/v1beta1/0000_0", "cluster/v1beta2/0000_0"];

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![test(fixture, "placement::who was filtered, who is chosen and by which scores", explained)]
}

fn explained(testbed: &Testbed) -> Result<()> {
    let (program, hub) = (clusters(testbed), &testbed.hub.server);
    let told = ended(&program, "placement explain team/web", 1)?.stderr;
    ensure!(told.contains("this hub has no Placements") && told.contains("controllers.parts.placement"), "{told}");
    hub.apply_text(&tools::kinds("open-cluster-management.io/api", &FILES)?)?;
    // For a moment after that, a new kind cannot be listed.
    let all = ["managedclusters", "managedclustersets", "managedclustersetbindings", "placements"];
    let all = all.into_iter().chain(["placementdecisions", "addonplacementscores"]);
    let all = all.map(|kind| format!("{kind}.{GROUP}")).collect::<Vec<_>>().join(",");
    wait::until("the kinds", SOON, || hub.names(&format!("{all} -A")))?;
    hub.create(&[namespace("cli-placing")])?;
    testbed.hub.apply(&objects())?;

    mistakes(&program)?;
    chosen(testbed, &program)?;
    rights(testbed)
}

fn objects() -> Vec<Value> {
    let own = |name: &str| json!({"name": name, "namespace": "cli-placing"});
    let cluster = |name: &str, region: &str| {
        json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {format!("{GROUP}/clusterset"): "cli-set", "region": region}},
            "spec": {"hubAcceptsClient": false}})
    };
    let mut tainted = cluster("cli-oslo", "eu");
    tainted["spec"]["taints"] = json!([{"key": "a", "effect": "NoSelect"}]);
    let spec = json!({"numberOfClusters": 1, "predicates": [{"requiredClusterSelector": {
        "labelSelector": {"matchLabels": {"region": "eu"}}}}]});
    vec![
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": "cli-set"}}),
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": own("cli-set"), "spec": {"clusterSet": "cli-set"}}),
        cluster("cli-berlin", "eu"),
        cluster("cli-munich", "eu"),
        tainted,
        cluster("cli-tokyo", "asia"),
        json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement", "metadata": own("web"), "spec": spec}),
        json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement", "metadata": own("wrong"),
            "spec": {"tolerations": [{"operator": "Equal", "value": "x"}]}}),
        json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement", "metadata": own(&"long".repeat(16)), "spec": {}}),
    ]
}

fn mistakes(program: &Kubectl) -> Result<()> {
    for name in ["web", "cli-placing/", "/web", "a/b/c"] {
        let told = ended(program, &format!("placement explain {name}"), 2)?.stderr;
        ensure!(told.contains("does not name a Placement") && told.contains("team/web"), "{told}");
    }
    ended(program, "placement explain cli-placing/web -o wide", 2)?;
    let told = ended(program, "placement explain cli-placing/other", 1)?.stderr;
    ensure!(told.contains(r#""other" not found"#) && told.contains("remedy: `kubectl get placements -A`"), "{told}");
    let told = ended(program, &format!("placement explain cli-placing/{}", "long".repeat(16)), 0)?.stdout;
    ensure!(told.contains("PlacementMisconfigured=True Misconfigured: :metadata.name has more than 63"), "{told}");
    let told = ended(program, "placement explain cli-placing/wrong", 0)?.stdout;
    ensure!(told.contains("not evaluated") && !told.contains("PlacementSatisfied"), "{told}");
    ensure!(told.lines().any(|line| line.split_whitespace().eq(["cli-berlin", "-", "no", "-", "-"])), "{told}");
    Ok(())
}

/// A candidate's line.
fn line(program: &Kubectl, cluster: &str) -> Result<String> {
    let told = ended(program, "placement explain cli-placing/web", 0)?.stdout;
    let line = told.lines().find(|line| line.starts_with(cluster)).with_context(|| told.clone())?;
    Ok(line.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn chosen(testbed: &Testbed, program: &Kubectl) -> Result<()> {
    let told = ended(program, "placement explain cli-placing/web", 0)?.stdout;
    ensure!(told.starts_with("PlacementMisconfigured=False Succeedconfigured: "), "{told}");
    ensure!(
        told.contains("\nPlacementSatisfied=True AllDecisionsScheduled: ") && told.contains("\nCLUSTER "),
        "{told}"
    );
    ensure!(line(program, "cli-berlin")? == "cli-berlin yes no - 100 Balance=100x1 Steady=0x1");
    ensure!(line(program, "cli-munich")? == "cli-munich no no - 100 Balance=100x1 Steady=0x1");
    ensure!(line(program, "cli-oslo")? == "cli-oslo no no TaintToleration -");
    ensure!(line(program, "cli-tokyo")? == "cli-tokyo no no Predicate -");
    // Existing decisions count.
    let decision = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "PlacementDecision",
        "metadata": {"name": "web-decision-1", "namespace": "cli-placing", "labels": {format!("{GROUP}/placement"): "web"}}});
    testbed.hub.apply(&[decision])?;
    let decide = |names: &[&str]| {
        let decided: Vec<_> = names.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
        let line = "placementdecision web-decision-1 -n cli-placing --subresource=status";
        testbed.hub.server.patch(line, &json!({"status": {"decisions": decided}}))
    };
    decide(&["cli-munich"])?;
    let mut screens = Screens::default();
    let mut shown = ended(program, "placement explain cli-placing/web", 0)?;
    shown.stdout = shown.stdout.replace("cli-", "");
    screens.compare("placement explain team/web", &shown)?;
    screens.finish()?;
    decide(&["cli-munich", "cli-gone"])?;
    ensure!(line(program, "cli-gone")? == "cli-gone no yes NotInSets -");
    let told = ended(program, "placement explain cli-placing/web", 0)?.stderr;
    ensure!(told.contains("in none of its sets") && told.contains("RemovalHeld"), "{told}");
    ensure!(line(program, "cli-munich")? == "cli-munich yes yes - 200 Balance=100x1 Steady=100x1");
    let told = ended(program, "placement explain cli-placing/web -o json", 0)?.stdout;
    let document: Value = serde_json::from_str(&told)?;
    ensure!(document["groups"][0]["clusters"] == json!(["cli-munich"]), "{document}");
    ensure!(
        document["candidates"][2]
            == json!({"cluster": "cli-oslo", "filteredBy": "TaintToleration", "isChosen": false,
        "isDecided": false, "scores": [], "total": 0}),
        "{document}"
    );
    Ok(())
}

fn rights(testbed: &Testbed) -> Result<()> {
    let token = testbed.hub.server.service_account_token("cli-placing", "reader")?;
    let program = clusters_as(testbed, &hub_user(testbed, "placement-reader", &token)?);
    let told = ended(&program, "placement explain cli-placing/web", 3)?.stderr;
    ensure!(told.contains("is forbidden") && told.contains("remedy: ask for the verb get on placements"), "{told}");
    let grant = |name: &str, resources: &[&str], place: Option<&str>| {
        let rules = json!([rule(GROUP, resources, &["get", "list"])]);
        testbed.hub.server.grant(name, place, &rules, ("cli-placing", "reader"))
    };
    let own = ["placements", "placementdecisions", "managedclustersetbindings"];
    grant("cli-placing-own", &own, Some("cli-placing"))?;
    let told = ended(&program, "placement explain cli-placing/web", 3)?.stderr;
    ensure!(told.contains("cannot list ") && told.contains("remedy: ask for the verb list on "), "{told}");
    grant("cli-placing-wide", &["managedclusters", "managedclustersets"], None)?;
    let output = ended(&program, "placement explain cli-placing/web", 0)?;
    ensure!(output.stdout.contains("cli-munich") && output.stderr.contains("Balance counts those of this one only"));
    Ok(())
}
