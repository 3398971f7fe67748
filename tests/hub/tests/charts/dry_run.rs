//! A hub accepts every rendering: no unknown field, and no violation of the `restricted` Pod
//! Security Standard.

use std::collections::BTreeSet;

use hub_tests::prelude::*;
use libtest_mimic::Trial;

use crate::fixture::{Fixture, Planes, namespace, on_hub};
use crate::matrix;

const NAMESPACE: &str = "restricted";
/// The namespace that all renderings are for; here they get another one.
const RENDERED_FOR: &str = "vela-system";
/// Kinds of other projects, whose definitions this hub lacks.
const FOREIGN: [&str; 2] = ["cert-manager.io/", "monitoring.coreos.com/"];

pub(crate) fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![on_hub(fixture, "dry run::a hub takes every rendering", dry_run)]
}

fn dry_run(planes: &Planes) -> Result<()> {
    let _group = planes.claim_group(); // nobody else's APIService is there
    let kubectl = planes.hub.server.kubectl();
    let mut restricted = namespace(NAMESPACE);
    restricted["metadata"]["labels"] = json!({"pod-security.kubernetes.io/warn": "restricted"});
    let mut all = vec![restricted];
    all.extend(["clusters", "fleet", "karmada-cluster"].map(namespace));
    planes.hub.apply(&all)?;
    // A dry run does not create the namespace of other objects. This one is in renderings, and
    // kubectl warns of what it did not apply itself.
    kubectl.apply("{apiVersion: v1, kind: Namespace, metadata: {name: restricted-clusters}}")?;
    let mut taken_before = BTreeSet::new();
    for (case, objects) in matrix::rendered(&planes.helm, &planes.directory)? {
        // What another case has, too, word for word, is sent once.
        let objects = serde_json::to_string(objects)?.replace(RENDERED_FOR, NAMESPACE);
        let mut objects: Vec<Value> = serde_json::from_str(&objects)?;
        objects.retain(|object| {
            !FOREIGN.iter().any(|group| object["apiVersion"].as_str().is_some_and(|version| version.starts_with(group)))
                && taken_before.insert(object.to_string())
        });
        if objects.is_empty() {
            continue;
        }
        let count = objects.len();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        let words = ["apply", "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
        let output = kubectl.args(words).stdin(list.to_string()).run()?;
        // The standard warns about the node's network, which that case requests.
        ensure!(output.stderr.is_empty() || case.name == "much", "{}: {}", case.name, output.stderr);
        let taken = output.success().context(case.name)?;
        ensure!(taken.lines().count() == count, "{}: {taken}", case.name);
    }
    Ok(())
}
