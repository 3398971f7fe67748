//! Which clusters are chosen, and how the choice is written.

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::wait;
use serde_json::{Value, json};

use super::{GROUP, Place, cluster, clusters};
use crate::fixture::{SOON, apply, wait_logged};

pub fn golden(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-golden")?;
    let (north, south) = ("golden-north", "golden-south");
    place.sets(&[north, south])?;
    apply(
        testbed,
        &[
            cluster("golden1", north, &json!({"tier": "gold"})),
            cluster("golden2", north, &json!({})),
            cluster("golden3", south, &json!({})),
            cluster("golden4", south, &json!({"tier": "lead"})),
            cluster("golden5", "golden-elsewhere", &json!({"tier": "gold"})),
        ],
    )?;
    place.status(
        "managedcluster golden2",
        &json!({"conditions": [], "version": {},
        "clusterClaims": [{"name": "region", "value": "eu"}]}),
    )?;
    place.status("managedcluster golden3", &json!({"conditions": [], "version": {"kubernetes": "v1.35.2"}}))?;
    let by = |selector: Value| json!({"requiredClusterSelector": selector});
    place.place(
        "mixed",
        &json!({"predicates": [
            by(json!({"labelSelector": {"matchLabels": {"tier": "gold"}}})),
            by(json!({"claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}})),
            by(json!({"celSelector": {"celExpressions":
                ["semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver('1.30.0'))"]}})),
        ]}),
    )?;
    place.wait_chosen("mixed", &["golden1", "golden2", "golden3"])?;
    let uid = place.placement("mixed")?["metadata"]["uid"].clone();
    let decision = place.decisions("mixed")?.remove(0);
    let owner = json!([{"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", "name": "mixed",
        "uid": uid, "controller": true, "blockOwnerDeletion": true}]);
    let labels = json!({
        "cluster.open-cluster-management.io/placement": "mixed",
        "cluster.open-cluster-management.io/decision-group-name": "",
        "cluster.open-cluster-management.io/decision-group-index": "0"});
    ensure!(decision["metadata"]["name"] == "mixed-decision-1", "{decision}");
    ensure!(decision["metadata"]["ownerReferences"] == owner, "{decision}");
    ensure!(decision["metadata"]["labels"] == labels, "{decision}");
    let list = ["golden1", "golden2", "golden3"].map(|name| json!({"clusterName": name, "reason": ""}));
    ensure!(decision["status"] == json!({"decisions": list}), "{decision}");
    let groups = json!([{"decisionGroupIndex": 0, "decisionGroupName": "", "decisions": ["mixed-decision-1"],
        "clusterCount": 3}]);
    ensure!(place.placement("mixed")?["status"]["decisionGroups"] == groups);
    told(&place, "mixed")?;
    let line = format!("namespace={:?} placement=\"mixed\" decision=\"mixed-decision-1\" clusters=3", place.name);
    wait_logged(testbed, &["a decision was ", &line])?;
    // One set alone, and none of them.
    place.place("north", &json!({"clusterSets": [north]}))?;
    place.wait_chosen("north", &["golden1", "golden2"])?;
    place.end(&["golden1", "golden2", "golden3", "golden4", "golden5"], &[north, south])
}

/// Where else the choice shows: Events, metrics, `/debug/placement`, and the output of `kubectl
/// get`.
fn told(place: &Place<'_>, name: &str) -> Result<()> {
    let note = place.wait_event(name, "DecisionCreate")?;
    ensure!(note == format!("Decision {name}-decision-1 is created with placement {name} in namespace {}", place.name));
    // Up to 100 from each of two prioritizers, for each cluster that passed the predicates; by
    // name.
    let scores = place.wait_event(name, "ScoreUpdate")?;
    ensure!(scores.starts_with("golden1:") && scores.contains(" golden3:") && !scores.contains("golden4"), "{scores}");
    ensure!(place.metric("cluster_gateway_placement_decisions", "")? >= 3.0);
    ensure!(place.metric("cluster_gateway_placement_schedule_duration_seconds_count", "")? >= 1.0);
    let why = place.running.get(&format!("/debug/placement?name={}/{name}", place.name))?;
    let line = |cluster: &str| why.lines().find(|line| line.starts_with(cluster)).unwrap_or_default().to_owned();
    ensure!(line("golden1").contains("\tyes\t-\t") && line("golden1").contains("Steady=100x1"), "{why}");
    ensure!(line("golden4").contains("\tno\tPredicate\t") && line("golden5").is_empty(), "{why}");
    let printed =
        place.testbed.hub.server.kubectl().ok(&format!("get placement {name} -n {} --no-headers", place.name))?;
    let words: Vec<&str> = printed.split_whitespace().collect();
    ensure!(words[1..] == ["True", "AllDecisionsScheduled", "3"], "{printed}");
    Ok(())
}

pub fn slices(testbed: &Testbed) -> Result<()> {
    let values = "controllers.parts.placement=true,controllers.sourceRemovalLimit=1000";
    let place = Place::start_with(testbed, "placement-slices", values)?;
    place.sets(&["slices"])?;
    let names: Vec<String> = (0..250).map(|number| format!("slice{number:03}")).collect();
    apply(testbed, &names.iter().map(|name| cluster(name, "slices", &json!({}))).collect::<Vec<_>>())?;
    place.place("many", &json!({}))?;
    let sizes = |expected: &[usize]| {
        wait::until(&format!("decisions of {expected:?}"), SOON, || {
            let sizes: Vec<usize> = place.decisions("many")?.iter().map(|one| clusters(one).len()).collect();
            ensure!(sizes == expected, "{sizes:?}");
            Ok(())
        })
    };
    sizes(&[100, 100, 50])?;
    let chosen = place.chosen("many")?;
    ensure!(chosen == names, "sorted by name: {chosen:?}");
    place.place("many", &json!({"numberOfClusters": 90}))?;
    sizes(&[90])?;
    wait::until("Events", SOON, || {
        for (reason, told) in [("DecisionDelete", "3 is deleted"), ("DecisionUpdate", "1 is updated")] {
            let notes = place.wait_event("many", reason)?;
            let expected = format!("Decision many-decision-{told} with placement many in namespace placement-slices");
            ensure!(notes.contains(&expected), "{notes}");
        }
        Ok(())
    })?;
    place.delete(&format!("managedclusters -l {GROUP}/clusterset=slices --wait=false"))?;
    sizes(&[0])?;
    let name = place.decisions("many")?[0]["metadata"]["name"].clone();
    ensure!(name == "many-decision-1", "{name}");
    place.end(&[], &["slices"])
}

pub fn groups(testbed: &Testbed) -> Result<()> {
    let place = Place::start(testbed, "placement-groups")?;
    place.sets(&["groups"])?;
    let names = ["group1", "group2", "group3", "group4", "group5", "group6", "group7"];
    let label = |name: &str| if name < "group4" { json!({"stage": "canary"}) } else { json!({}) };
    apply(testbed, &names.map(|name| cluster(name, "groups", &label(name))))?;
    let grouped = |size: Value| {
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": [
            {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"stage": "canary"}}}}]}}})
    };
    let told = || -> Result<Vec<(String, String, Vec<String>)>> {
        let label = |decision: &Value, name: &str| {
            decision["metadata"]["labels"][format!("{GROUP}/decision-group-{name}")]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let decisions = place.decisions("grouped")?;
        Ok(decisions.iter().map(|one| (label(one, "index"), label(one, "name"), clusters(one))).collect())
    };
    let wait = |expected: &[(&str, &str, &[&str])]| {
        wait::until("the groups", SOON, || {
            let told = told()?;
            let is_same = told.len() == expected.len()
                && told.iter().zip(expected).all(|(told, expected)| {
                    (told.0.as_str(), told.1.as_str()) == (expected.0, expected.1) && told.2 == expected.2
                });
            ensure!(is_same, "{told:?}");
            let groups = place.placement("grouped")?["status"]["decisionGroups"].clone();
            ensure!(groups.as_array().is_some_and(|groups| groups.len() == expected.len()), "{groups}");
            Ok(())
        })
    };
    place.place("grouped", &grouped(json!(2)))?;
    wait(&[
        ("0", "canary", &["group1", "group2"]),
        ("1", "canary", &["group3"]),
        ("2", "", &["group4", "group5"]),
        ("3", "", &["group6", "group7"]),
    ])?;
    // Half of seven, rounded up, is four.
    place.place("grouped", &grouped(json!("50%")))?;
    wait(&[("0", "canary", &["group1", "group2", "group3"]), ("1", "", &["group4", "group5", "group6", "group7"])])?;
    place.end(&names, &["groups"])
}
