//! Placements are scheduled, with upstream's kinds and the rights that the chart grants.

mod bad_input;
mod choice;
mod conflicts;
mod failover;
mod kinds;
mod prioritizers;
mod reasons;
mod removals;
mod rights;
mod stillness;
mod upkeep;
mod upstream;
mod watched;

use std::sync::Arc;

use anyhow::{Result, ensure};
use hub_tests::testbed::Testbed;
use hub_tests::turns;
use hub_tests::wait;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use crate::fixture::{Fixture, SOON, apply, condition, said, test};
use crate::part::{Part, has_part};
use crate::{registration, replica_sets};

const GROUP: &str = "cluster.open-cluster-management.io";
/// The controller's name in metrics.
const NAME: &str = "placement";
const WRITES: &str = "cluster_gateway_placement_writes_total";

pub fn trials(fixture: &Arc<Fixture>) -> Vec<Trial> {
    vec![
        test(fixture, "rights: placement with what the chart grants, of which nothing stands idle", rights::used),
        test(fixture, "placement: two sets by label, claim and expression, as upstream writes it", choice::golden),
        test(fixture, "placement: 250 clusters, 90, none", choice::slices),
        test(fixture, "placement: groups by selector, then by size", choice::groups),
        test(fixture, "placement: what is satisfied, and what is not", reasons::each),
        test(fixture, "placement: a binding of a set that comes later", reasons::late_set),
        test(fixture, "placement: balance, and what steady is worth", prioritizers::balance_and_steady),
        test(fixture, "placement: an add-on's score, and its end", prioritizers::scores),
        test(fixture, "placement: clusters with the most to allocate", prioritizers::resources),
        test(fixture, "placement: a toleration ends to the second", upkeep::toleration),
        test(fixture, "placement: what a hand edited is put back, and what is foreign goes", upkeep::put_back),
        test(fixture, "placement: one that cannot be evaluated keeps its decisions", upkeep::misconfigured),
        test(fixture, "placement: sets, labels and bindings are followed, and nobody else runs", upkeep::followed),
        test(fixture, "placement: another of its name has the decisions of the one before", upkeep::recreated),
        test(fixture, "placement: kinds that come later", kinds::late),
        test(fixture, "placement: a kind that went and came back withdraws nothing", kinds::kept),
        test(fixture, "placement: a restart writes nothing", stillness::restart),
        test(fixture, "placement: beside another scheduler it stands by", conflicts::stands_by),
        test(fixture, "placement: decisions that another scheduler writes are left alone", conflicts::left_alone),
        test(fixture, "placement: one that would choose otherwise for ever is left", conflicts::unstable),
        test(fixture, "placement: many clusters that go at once are kept for a while", removals::crowd),
        test(
            fixture,
            "placement: the next leader finishes what one left, and writes nothing twice",
            failover::take_over,
        ),
        test(fixture, "placement: upstream's scheduler decides the same, and is never run beside", upstream::same),
        test(fixture, "placement: bad input is answered, and nobody else affected", bad_input::answered),
    ]
}

/// The part, and its Placements in the same namespace.
struct Place<'t> {
    part: Part<'t>,
}

has_part!(Place);

impl<'t> Place<'t> {
    fn start(testbed: &'t Testbed, name: &'static str) -> Result<Self> {
        Self::start_with(testbed, name, "controllers.parts.placement=true")
    }

    fn start_with(testbed: &'t Testbed, name: &'static str, values: &str) -> Result<Self> {
        let place = Self::install(testbed, name, values)?;
        place.wait_to_work(NAME)?;
        Ok(place)
    }

    fn install(testbed: &'t Testbed, name: &'static str, values: &str) -> Result<Self> {
        // Two of these at once would schedule each other's Placements, and those whose decisions
        // tests write themselves.
        let alone = turns::alone(&[registration::ALONE, replica_sets::ALONE]);
        Ok(Self { part: Part::install(testbed, name, values, vec![alone])? })
    }

    /// Creates sets with these names, which clusters join by label, and binds them to this
    /// namespace.
    fn sets(&self, names: &[&str]) -> Result<()> {
        let objects: Vec<Value> = names.iter().flat_map(|name| [set(name), binding(self.name, name)]).collect();
        apply(self.testbed, &objects)
    }

    fn place(&self, name: &str, spec: &Value) -> Result<()> {
        apply(self.testbed, &[placement(self.name, name, spec)])
    }

    /// The decisions of a Placement, in the order of their numbers.
    fn decisions(&self, name: &str) -> Result<Vec<Value>> {
        let line = format!("placementdecisions -n {} -l {GROUP}/placement={name}", self.name);
        let mut all = self.json(&line)?["items"].as_array().cloned().unwrap_or_default();
        all.sort_by_key(number);
        Ok(all)
    }

    fn chosen(&self, name: &str) -> Result<Vec<String>> {
        Ok(self.decisions(name)?.iter().flat_map(clusters).collect())
    }

    /// Waits until its decisions name these clusters, and its status counts them.
    fn wait_chosen(&self, name: &str, expected: &[&str]) -> Result<()> {
        wait::until(&format!("{name} to choose {expected:?}"), SOON, || {
            let chosen = self.chosen(name)?;
            ensure!(chosen == expected && !self.decisions(name)?.is_empty(), "{chosen:?}");
            let told = self.placement(name)?["status"]["numberOfSelectedClusters"].clone();
            ensure!(told == expected.len(), "{told} are told");
            Ok(())
        })
    }

    fn placement(&self, name: &str) -> Result<Value> {
        self.json(&format!("placement {name} -n {}", self.name))
    }

    fn condition(&self, name: &str, of: &str) -> Result<Value> {
        Ok(condition(&self.placement(name)?["status"], of).clone())
    }

    /// Waits for `status/reason` of a condition; returns its message.
    fn wait_condition(&self, name: &str, of: &str, expected: &str) -> Result<String> {
        wait::until(&format!("{of} of {name} to be {expected}"), SOON, || {
            let found = self.condition(name, of)?;
            ensure!(said(&found) == expected, "{found}");
            Ok(found["message"].as_str().unwrap_or_default().to_owned())
        })
    }

    /// Waits until a condition is of the current generation: a run that saw it has ended.
    fn wait_condition_now(&self, name: &str, of: &str) -> Result<()> {
        wait::until(&format!("{of} of this generation of {name}"), SOON, || {
            let placement = self.placement(name)?;
            let told = condition(&placement["status"], of)["observedGeneration"].clone();
            ensure!(told == placement["metadata"]["generation"], "{placement}");
            Ok(())
        })
    }

    /// Stops the controllers, and deletes what would keep the next ones busy.
    fn end(mut self, clusters: &[&str], sets: &[&str]) -> Result<()> {
        self.running.stop()?;
        self.delete(&format!("placements,placementdecisions,managedclustersetbindings --all -n {}", self.name))?;
        for (kind, names) in [("managedclusters", clusters), ("managedclustersets", sets)] {
            if !names.is_empty() {
                self.delete(&format!("{kind} {} --ignore-not-found", names.join(" ")))?;
            }
        }
        Ok(())
    }
}

/// The number of a decision, counted from 1.
fn number(decision: &Value) -> usize {
    let name = decision["metadata"]["name"].as_str().unwrap_or_default();
    name.rsplit('-').next().and_then(|number| number.parse().ok()).unwrap_or(usize::MAX)
}

fn clusters(decision: &Value) -> Vec<String> {
    let list = decision["status"]["decisions"].as_array().into_iter().flatten();
    list.map(|one| one["clusterName"].as_str().unwrap_or_default().to_owned()).collect()
}

fn set(name: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": name},
        "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})
}

fn binding(namespace: &str, set: &str) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
        "metadata": {"name": set, "namespace": namespace}, "spec": {"clusterSet": set}})
}

/// A cluster of a set, with labels.
fn cluster(name: &str, set: &str, labels: &Value) -> Value {
    let mut labels = labels.clone();
    labels[format!("{GROUP}/clusterset")] = set.into();
    json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}})
}

fn placement(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

/// A policy with these prioritizers only.
fn exactly(weights: &[(&str, i32)]) -> Value {
    let of = |(name, weight): &(&str, i32)| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": weight});
    json!({"mode": "Exact", "configurations": weights.iter().map(of).collect::<Vec<_>>()})
}
