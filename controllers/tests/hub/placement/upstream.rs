//! Upstream's own scheduler: it decides the same, and never runs at the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use hub_tests::ports;
use hub_tests::process::Process;
use hub_tests::testbed::Testbed;
use hub_tests::tools::{self, Tool};
use hub_tests::wait;
use serde_json::{Value, json};

use super::{GROUP, Place, WRITES, binding, cluster, clusters, exactly, placement, prioritizers};
use crate::fixture::{SOON, apply, namespace};

const SETS: [&str; 2] = ["peer-a", "peer-b"];
const THEIRS: &str = "placement-peer-theirs";
/// Duration of upstream's Lease, which is stale that long after a kill.
const LEASE: Duration = Duration::from_secs(6);
/// Upstream's program takes a moment to start, and tries to get its Lease every second.
const PEER: Duration = Duration::from_mins(1);

pub fn same(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-peer-ours")?;
    let names = fleet(&place)?;
    let ours = outcome(&place, place.name)?;
    place.delete(&format!("placements,placementdecisions --all -n {}", place.name))?;

    // It runs, so our part stands by.
    apply(testbed, &[namespace(THEIRS)])?;
    apply(testbed, &SETS.map(|set| binding(THEIRS, set)))?;
    let mut upstream = start(testbed)?;
    wait::until_true("that it stands by", PEER, || place.stands_by(super::NAME, true))
        .with_context(|| upstream.log_tail())?;
    let writes = place.metric(WRITES, "")?;
    let theirs = outcome(&place, THEIRS).with_context(|| upstream.log_tail())?;
    for (name, expected) in &theirs {
        let ours = ours.get(name).context("not ours")?;
        ensure!(ours == expected, "{name}: ours {ours}, upstream's {expected}");
    }
    ensure!(place.metric(WRITES, "")? - writes < 0.5, "it writes beside them");

    // It is killed: its Lease goes stale, and our part continues.
    upstream.signal("KILL")?;
    wait::until_true("that it goes on", LEASE + SOON, || place.stands_by(super::NAME, false))?;
    testbed.hub.server.label("managedcluster peer-00 env=other")?;
    wait::until_true(
        "that a change is followed",
        SOON,
        || Ok(told(&place, THEIRS, "by-label")? != theirs["by-label"]),
    )?;
    place.delete(&format!("placements,placementdecisions,managedclustersetbindings --all -n {THEIRS}"))?;
    place.delete("lease placement-lock --ignore-not-found -n placement-peer-theirs")?;
    place.end(&names.iter().map(String::as_str).collect::<Vec<_>>(), &SETS)
}

/// Starts upstream's program, which holds its Lease in the namespace of its Placements.
fn start(testbed: &Testbed) -> Result<Process> {
    let arguments = [
        "controller".to_owned(),
        format!("--kubeconfig={}", testbed.hub.server.kubectl().kubeconfig.display()),
        format!("--namespace={THEIRS}"),
        format!("--listen=127.0.0.1:{}", ports::free()?),
        format!("--leader-election-lease-duration={}s", LEASE.as_secs()),
        "--leader-election-renew-deadline=4s".to_owned(),
        "--leader-election-retry-period=1s".to_owned(),
    ];
    Process::start(
        "ocm-placement",
        &tools::provide(Tool::OcmPlacement)?,
        arguments,
        &testbed.directory("ocm-placement")?,
    )
}

/// Twelve clusters in two sets, which differ in everything that a choice depends on.
fn fleet(place: &Place<'_>) -> Result<Vec<String>> {
    place.sets(&SETS)?;
    let names: Vec<String> = (0..12).map(|number| format!("peer-{number:02}")).collect();
    let of = |(number, name): (usize, &String)| {
        let env = if number % 3 == 0 { "prod" } else { "test" };
        let mut cluster = cluster(name, SETS[number % 2], &json!({"env": env, "zone": format!("z{}", number % 4)}));
        match number {
            4 => cluster["spec"]["taints"] = json!([{"key": "gpu", "value": "a", "effect": "NoSelect"}]),
            5 => cluster["spec"]["taints"] = json!([{"key": "new", "effect": "NoSelectIfNew"}]),
            6 => cluster["spec"]["taints"] = json!([{"key": "soft", "effect": "PreferNoSelect"}]),
            _ => {}
        }
        cluster
    };
    apply(place.testbed, &names.iter().enumerate().map(of).collect::<Vec<_>>())?;
    for (number, name) in names.iter().enumerate().filter(|(number, _)| number % 5 != 4) {
        let resources =
            json!({"cpu": format!("{}m", 700 * (number + 1)), "memory": format!("{}Mi", 9000 - 512 * number)});
        let claims = json!([{"name": "platform", "value": if number < 6 { "aws" } else { "gcp" }},
            {"name": "version", "value": format!("1.{number}.0")}]);
        let status = json!({"conditions": [], "version": {"kubernetes": format!("v1.{}.0", 30 + number % 4)},
            "allocatable": resources, "capacity": resources, "clusterClaims": claims});
        place.status(&format!("managedcluster {name}"), &status)?;
        prioritizers::score(place, name, i32::try_from(number)? * 13 % 90 - 30, None)?;
    }
    Ok(names)
}

/// Names and specs, in the order of creation: Balance counts the earlier ones.
fn specs() -> Vec<(&'static str, Value)> {
    let selector = |of: &str, more: Value| json!({"predicates": [{"requiredClusterSelector": {of: more}}]});
    let labels = selector("labelSelector", json!({"matchLabels": {"env": "prod"}}));
    let zones = json!({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["z1", "z2"]}]});
    let claims = json!({"matchExpressions": [{"key": "platform", "operator": "In", "values": ["aws"]}]});
    let expression =
        "managedCluster.metadata.labels['env'] == 'test' && managedCluster.status.version.kubernetes != 'v1.31.0'";
    let some = |count: i32, policy: Value| json!({"numberOfClusters": count, "prioritizerPolicy": policy});
    let groups = |size: Value| {
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": [
            {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"zone": "z0"}}}}]}}})
    };
    let tolerates = json!([{"key": "gpu", "operator": "Equal", "value": "a"}, {"key": "new", "operator": "Exists"}]);
    let weighted = json!({"configurations": [
        {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "ResourceAllocatableCPU"}, "weight": 2},
        {"scoreCoordinate": {"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}}, "weight": -3}]});
    vec![
        ("all", json!({})),
        ("one-set", json!({"clusterSets": [SETS[1]]})),
        ("unbound", json!({"clusterSets": ["peer-c"]})),
        ("by-label", labels),
        ("by-zone", selector("labelSelector", zones)),
        ("by-claim", selector("claimSelector", claims)),
        ("by-expression", selector("celSelector", json!({"celExpressions": [expression]}))),
        ("nobody", selector("labelSelector", json!({"matchLabels": {"env": "none"}}))),
        ("three", json!({"numberOfClusters": 3})),
        ("three-more", json!({"numberOfClusters": 3})),
        ("too-many", json!({"numberOfClusters": 100})),
        ("tolerant", json!({"tolerations": tolerates})),
        ("cpu", some(4, exactly(&[("ResourceAllocatableCPU", 1)]))),
        ("memory", some(4, exactly(&[("ResourceAllocatableMemory", 1), ("Balance", 1)]))),
        ("score", some(5, prioritizers::by_load())),
        ("weighted", some(5, weighted)),
        ("groups", groups(json!(2))),
        ("half", groups(json!("50%"))),
    ]
}

/// The outcome of each Placement in a namespace; they are created one after the other.
fn outcome(place: &Place<'_>, namespace: &str) -> Result<BTreeMap<&'static str, Value>> {
    let mut all = BTreeMap::new();
    for (name, spec) in specs() {
        apply(place.testbed, &[placement(namespace, name, &spec)])?;
        // A run may follow that has the first result as its input, so two equal results in a row
        // count.
        let mut last = Value::Null;
        let settled = wait::until(&format!("{name} to be decided"), SOON, || {
            let now = told(place, namespace, name)?;
            let is_settled = now == last && now["conditions"].as_array().is_some_and(|all| all.len() == 2);
            last = now.clone();
            ensure!(is_settled, "{now}");
            Ok(now)
        })?;
        all.insert(name, settled);
    }
    Ok(all)
}

/// Decisions with their labels and owner, and the status without what only our part reports.
fn told(place: &Place<'_>, namespace: &str, name: &str) -> Result<Value> {
    let decisions = place.json(&format!("placementdecisions -n {namespace} -l {GROUP}/placement={name}"))?;
    let mut decisions: Vec<Value> = decisions["items"].as_array().cloned().unwrap_or_default();
    decisions.sort_by_key(super::number);
    let decisions = decisions.iter().map(|one| {
        let owner = &one["metadata"]["ownerReferences"][0];
        json!({"name": one["metadata"]["name"], "labels": one["metadata"]["labels"], "clusters": clusters(one),
            "owner": [owner["kind"], owner["name"], owner["controller"], owner["blockOwnerDeletion"]]})
    });
    let status = place.json(&format!("placement {name} -n {namespace}"))?["status"].clone();
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let mut conditions: Vec<Value> =
        conditions.map(|one| json!([one["type"], one["status"], one["reason"], one["message"]])).collect();
    conditions.sort_by_key(Value::to_string);
    Ok(json!({"decisions": decisions.collect::<Vec<_>>(), "conditions": conditions,
        // Go omits a 0.
        "numberOfSelectedClusters": status["numberOfSelectedClusters"].as_i64().unwrap_or(0), "decisionGroups": status["decisionGroups"]}))
}
