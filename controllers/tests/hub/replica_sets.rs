//! `ManifestWorkReplicaSets` get their works, with upstream's kinds and the rights that the chart
//! grants. There is no member: the tests report the works' status as an agent would.

mod bad_input;
mod delivered;
mod expiry;
mod many;
mod removal;
mod rights;
mod rollout;
mod stillness;

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, apply, condition, namespace, said, test};
use crate::part::{Part, has_part};
use crate::registration;

/// Two of these at once would keep each other's works.
pub const ALONE: &str = "Placements and ManifestWorkReplicaSets";
const WORK: &str = "work.open-cluster-management.io";
const CLUSTER: &str = "cluster.open-cluster-management.io";
const WRITES: &str = "cluster_gateway_replica_sets_writes_total";
const SETS: &str = "cluster_gateway_replica_sets_sets";
/// The controller's name in metrics.
const NAME: &str = "replica-sets";
const PART: &str = "controllers.parts.replicaSets=true";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "replica-sets: works, labels and status, and a template that changes", rollout::all),
        test(fixture, "replica-sets: one at a time, and what succeeded goes on doing so", rollout::progressive),
        test(fixture, "replica-sets: a cluster that fails stops it", rollout::failures),
        test(fixture, "replica-sets: the canary's group first", rollout::per_group),
        test(fixture, "replica-sets: works without a rule, with upstream's way", rollout::needs_rules),
        test(
            fixture,
            "replica-sets: with the part that delivers: another Placement, and no rule",
            delivered::both_ways,
        ),
        test(fixture, "replica-sets: works of no set that are complete go when their time is over", expiry::expired),
        test(fixture, "replica-sets: a cluster that is dropped loses its work", removal::dropped),
        test(fixture, "replica-sets: decisions that are gone by mistake withdraw nothing", removal::held),
        test(fixture, "replica-sets: the end, with works that are waited for and not", removal::cascade),
        test(fixture, "replica-sets: the end, with works that nobody holds", removal::foreground),
        test(fixture, "replica-sets: bad input is answered, and nobody else affected", bad_input::answered),
        test(fixture, "replica-sets: a restart writes nothing", stillness::restart),
        test(fixture, "replica-sets: beside upstream's work manager it stands by", stillness::stands_by),
        test(fixture, "replica-sets: 300 clusters at once", many::all),
        test(fixture, "rights: replica-sets with what the chart grants, of which nothing stands idle", rights::used),
        // These also wait for the turn of tests with clusters.
        test(
            fixture,
            "replica-sets: beside ocm-registration, whose policy limits works to those of sets",
            rights::limited,
        ),
        test(fixture, "replica-sets: a Placement of this program's is followed", rollout::placed),
    ]
}

/// The part, and its sets in the same namespace.
struct Place<'t> {
    part: Part<'t>,
}

has_part!(Place);

impl<'t> Place<'t> {
    fn start(testbed: &'t Testbed, name: &'static str) -> Result<Self> {
        Self::with(testbed, name, PART)
    }

    fn with(testbed: &'t Testbed, name: &'static str, values: &str) -> Result<Self> {
        Self::install(testbed, name, values)?.working()
    }

    /// Installs the part while no other test has clusters, or policies of registration.
    fn among_clusters(testbed: &'t Testbed, name: &'static str, values: &str) -> Result<Self> {
        Self::alone(testbed, name, values, &[ALONE, registration::ALONE])?.working()
    }

    fn working(self) -> Result<Self> {
        self.wait_to_work(NAME)?;
        Ok(self)
    }

    fn install(testbed: &'t Testbed, name: &'static str, values: &str) -> Result<Self> {
        Self::alone(testbed, name, values, &[ALONE])
    }

    fn alone(testbed: &'t Testbed, name: &'static str, values: &str, names: &[&'static str]) -> Result<Self> {
        Ok(Self { part: Part::install(testbed, name, values, vec![turns::alone(names)])? })
    }

    /// Creates the namespaces of clusters.
    fn clusters(&self, names: &[&str]) -> Result<()> {
        apply(self.testbed, &names.iter().map(|name| namespace(name)).collect::<Vec<_>>())
    }

    /// A Placement that has chosen these clusters, by group, as a scheduler writes it.
    fn choose(&self, placement: &str, groups: &[(&str, &[&str])]) -> Result<()> {
        let object = json!({"apiVersion": format!("{CLUSTER}/v1beta1"), "kind": "Placement",
            "metadata": {"name": placement, "namespace": self.name}, "spec": {}});
        let decisions: Vec<Value> =
            groups.iter().enumerate().map(|(index, (name, _))| self.decision(placement, index, name)).collect();
        apply(self.testbed, &[&[object][..], &decisions].concat())?;
        let mut told = Vec::new();
        for (index, (name, clusters)) in groups.iter().enumerate() {
            let decision = format!("{placement}-decision-{}", index + 1);
            let list: Vec<Value> = clusters.iter().map(|name| json!({"clusterName": name, "reason": ""})).collect();
            self.status(&format!("placementdecision {decision}"), &json!({"decisions": list}))?;
            told.push(json!({"decisionGroupIndex": index, "decisionGroupName": name, "decisions": [decision],
                "clusterCount": clusters.len()}));
        }
        let selected: usize = groups.iter().map(|(_, clusters)| clusters.len()).sum();
        let status = json!({"numberOfSelectedClusters": selected, "decisionGroups": told, "conditions": []});
        self.status(&format!("placement {placement}"), &status)
    }

    fn decision(&self, placement: &str, index: usize, group: &str) -> Value {
        let labels = json!({format!("{CLUSTER}/placement"): placement,
            format!("{CLUSTER}/decision-group-index"): index.to_string(),
            format!("{CLUSTER}/decision-group-name"): group});
        json!({"apiVersion": format!("{CLUSTER}/v1beta1"), "kind": "PlacementDecision",
            "metadata": {"name": format!("{placement}-decision-{}", index + 1), "namespace": self.name, "labels": labels}})
    }

    fn set(&self, name: &str, data: &str, references: &Value) -> Result<()> {
        apply(self.testbed, &[set(self.name, name, data, references)])
    }

    /// The works of a set, by cluster.
    fn works(&self, set: &str) -> Result<Vec<Value>> {
        let line = format!("manifestworks -A -l {WORK}/manifestworkreplicaset={}.{set}", self.name);
        let mut all = self.json(&line)?["items"].as_array().cloned().unwrap_or_default();
        all.sort_by_key(|work| work["metadata"]["namespace"].to_string());
        Ok(all)
    }

    /// Waits until exactly these clusters have a work of the set.
    fn wait_works(&self, set: &str, clusters: &[&str]) -> Result<Vec<Value>> {
        wait::until(&format!("works of {set} for {clusters:?}"), SOON, || {
            let works = self.works(set)?;
            let found: Vec<&str> = works.iter().map(of).collect();
            ensure!(found == clusters, "{found:?}");
            Ok(works)
        })
    }

    /// Waits until exactly these clusters have `data` in their work.
    fn wait_data(&self, set: &str, data: &str, clusters: &[&str]) -> Result<()> {
        wait::until(&format!("{data} of {set} at {clusters:?}"), SOON, || {
            let found = self.with_data(set, data)?;
            ensure!(found == clusters, "{found:?}");
            Ok(())
        })
    }

    fn with_data(&self, set: &str, data: &str) -> Result<Vec<String>> {
        let works = self.works(set)?;
        let has = |work: &&Value| work["spec"]["workload"]["manifests"][0]["data"]["a"] == data;
        Ok(works.iter().filter(has).map(|work| of(work).to_owned()).collect())
    }

    /// Reports conditions of a cluster's work as an agent would, for its current generation.
    fn report(&self, set: &str, cluster: &str, conditions: &[(&str, &str)]) -> Result<()> {
        let works = self.works(set)?;
        let work = works.iter().find(|work| of(work) == cluster).context("a work")?;
        let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let condition = |(kind, status): &(&str, &str)| {
            json!({"type": kind, "status": status, "reason": "Reported", "message": "", "lastTransitionTime": now,
                "observedGeneration": work["metadata"]["generation"]})
        };
        let conditions: Vec<Value> = conditions.iter().map(condition).collect();
        let name = work["metadata"]["name"].as_str().context("a name")?;
        let status = json!({"status": {"conditions": conditions}});
        self.patch(&format!("manifestwork {name} -n {cluster} --subresource=status"), &status)
    }

    fn report_done(&self, set: &str, clusters: &[&str]) -> Result<()> {
        let done = [("Applied", "True"), ("Available", "True"), ("Progressing", "False")];
        clusters.iter().try_for_each(|cluster| self.report(set, cluster, &done))
    }

    fn read(&self, name: &str) -> Result<Value> {
        self.json(&format!("manifestworkreplicaset {name} -n {}", self.name))
    }

    /// Waits for a condition, as `type: status/reason`; returns its message.
    fn wait_condition(&self, name: &str, expected: &str) -> Result<String> {
        let (kind, expected) = expected.split_once(": ").context("a type")?;
        wait::until(&format!("{kind} of {name} to be {expected}"), SOON, || {
            let set = self.read(name)?;
            let found = condition(&set["status"], kind);
            ensure!(said(found) == expected, "{found}");
            Ok(found["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// Waits until the status tells of so many groups of decisions, and of so many clusters with
    /// the template among the chosen ones: a pass may see the Placement's own status later than its
    /// decisions, and tells of that in a second write.
    fn wait_told(&self, name: &str, groups: usize, [existing, chosen]: [usize; 2]) -> Result<()> {
        let expected = format!("{groups} ({existing} / {chosen} clusters applied)");
        wait::until(&format!("the status of {name} to tell {expected:?}"), SOON, || {
            let status = self.read(name)?["status"].take();
            ensure!(status["placementSummary"][0]["availableDecisionGroups"] == expected, "{status}");
            Ok(())
        })
    }

    /// Stops the controllers, and deletes what would keep the next ones busy.
    fn end(mut self) -> Result<()> {
        self.running.stop()?;
        let sets = self.json(&format!("manifestworkreplicasets -n {}", self.name))?;
        for set in sets["items"].as_array().into_iter().flatten() {
            let name = set["metadata"]["name"].as_str().unwrap_or_default();
            self.patch(&format!("manifestworkreplicaset {name} -n {}", self.name), &no_finalizers())?;
        }
        self.delete(&format!("manifestworkreplicasets,placements,placementdecisions --all -n {}", self.name))?;
        let label = format!("{WORK}/manifestworkreplicaset");
        let works = self.json(&format!("manifestworks -A -l {label}"))?;
        let sets = works["items"].as_array().into_iter().flatten();
        let sets = sets.filter_map(|work| work["metadata"]["labels"][&label].as_str());
        // Not others': those of a test that failed may wait for a controller that is gone.
        let own = sets.filter(|set| set.starts_with(&format!("{}.", self.name))).collect::<BTreeSet<_>>();
        own.into_iter().try_for_each(|set| self.delete(&format!("manifestworks -A -l {label}={set}")))
    }
}

fn no_finalizers() -> Value {
    json!({"metadata": {"finalizers": null}})
}

/// The cluster of a work.
fn of(work: &Value) -> &str {
    work["metadata"]["namespace"].as_str().unwrap_or_default()
}

fn set(namespace: &str, name: &str, data: &str, references: &Value) -> Value {
    let manifest = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "default"},
        "data": {"a": data}});
    json!({"apiVersion": format!("{WORK}/v1alpha1"), "kind": "ManifestWorkReplicaSet",
        "metadata": {"name": name, "namespace": namespace, "labels": {"team": "blue"}},
        "spec": {"manifestWorkTemplate": {"workload": {"manifests": [manifest]}}, "placementRefs": references,
            "cascadeDeletionPolicy": "Background"}})
}

fn all_at_once(placement: &str) -> Value {
    json!([{"name": placement, "rolloutStrategy": {"type": "All"}}])
}
