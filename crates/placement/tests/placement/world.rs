//! Turns the vectors' inputs into objects of a hub.

use placement::index::{Decisions, Scores};
use placement::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use placement::{Input, Outcome, Prepared, schedule};
use serde_json::{Value as Json, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

pub struct World {
    pub placement: Prepared,
    pub sets: Vec<ManagedClusterSet>,
    pub bindings: Vec<ManagedClusterSetBinding>,
    pub clusters: Vec<ManagedCluster>,
    pub scores: Scores,
    pub decisions: Decisions,
    pub now: OffsetDateTime,
}

/// A set of everything.
pub fn everything() -> Json {
    json!([{"name": "all", "clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}])
}

pub fn list<'j>(of: &'j Json, field: &str) -> &'j [Json] {
    of[field].as_array().map_or(&[], Vec::as_slice)
}

pub fn text(value: &Json) -> &str {
    value.as_str().unwrap_or_default()
}

pub fn texts(value: &Json) -> Vec<&str> {
    value.as_array().into_iter().flatten().map(text).collect()
}

pub fn moment(value: &Json) -> Option<OffsetDateTime> {
    value.as_str().map(|text| OffsetDateTime::parse(text, &Rfc3339).expect("RFC 3339"))
}

/// A `ManagedCluster` of the vectors' short form.
pub fn cluster(short: &Json) -> ManagedCluster {
    let mut object = json!({
        "metadata": {"name": short["name"]},
        "spec": {"hubAcceptsClient": true},
        "status": {"version": {}},
    });
    for (field, pointer) in [
        ("labels", ["metadata", "labels"]),
        ("taints", ["spec", "taints"]),
        ("claims", ["status", "clusterClaims"]),
        ("allocatable", ["status", "allocatable"]),
        ("capacity", ["status", "capacity"]),
    ] {
        if let Some(value) = short.get(field) {
            object[pointer[0]][pointer[1]] = value.clone();
        }
    }
    if let Some(version) = short.get("kubernetes") {
        object["status"]["version"]["kubernetes"] = version.clone();
    }
    if short["deleting"] == json!(true) {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    ManagedCluster::from(object)
}

fn binding(short: &Json, namespace: &str) -> ManagedClusterSetBinding {
    match short {
        Json::String(name) => ManagedClusterSetBinding { namespace: namespace.to_owned(), name: name.clone() },
        object => ManagedClusterSetBinding {
            namespace: text(&object["namespace"]).into(),
            name: text(&object["name"]).into(),
        },
    }
}

pub fn decision(short: &Json) -> PlacementDecision {
    PlacementDecision {
        namespace: text(&short["namespace"]).to_owned(),
        name: text(&short["name"]).to_owned(),
        placement: short["placement"].as_str().map(str::to_owned),
        clusters: texts(&short["clusters"]).into_iter().map(str::to_owned).collect(),
    }
}

// === impl World ===

impl World {
    /// From a case's inputs. Without sets of its own, everything is bound.
    pub fn new(case: &Json) -> Self {
        let short = &case["placement"];
        let namespace = short["namespace"].as_str().unwrap_or("team");
        let name = short["name"].as_str().unwrap_or("place");
        let object = json!({"metadata": {"namespace": namespace, "name": name}, "spec": short["spec"]});
        let object = if short["spec"].is_null() { json!({"metadata": object["metadata"]}) } else { object };
        let all = everything();
        let has_sets = case.get("sets").is_some() || case.get("bindings").is_some();
        let sets = if has_sets { list(case, "sets") } else { all.as_array().expect("a list") };
        let bindings = if has_sets { list(case, "bindings") } else { &[json!("all")] };
        let set = |short: &Json| {
            let object =
                json!({"metadata": {"name": short["name"]}, "spec": {"clusterSelector": short["clusterSelector"]}});
            ManagedClusterSet::from(object)
        };
        let score = |short: &Json| {
            serde_json::from_value(json!({
                "metadata": {"namespace": short["cluster"], "name": short["resource"]},
                "status": {"scores": short["scores"], "validUntil": short["validUntil"]},
            }))
            .expect("a score")
        };
        Self {
            placement: Prepared::new(&serde_json::from_value(object).expect("a Placement")),
            sets: sets.iter().map(set).collect(),
            bindings: bindings.iter().map(|short| binding(short, namespace)).collect(),
            clusters: list(case, "clusters").iter().map(cluster).collect(),
            scores: list(case, "scores").iter().map(score).collect(),
            decisions: list(case, "decisions").iter().map(decision).collect(),
            now: moment(&case["now"]).unwrap_or(OffsetDateTime::UNIX_EPOCH),
        }
    }

    /// Runs it, and passes the outcome to `look`.
    pub fn run<T>(&self, look: impl FnOnce(&Outcome<'_>) -> T) -> T {
        self.run_with(|input| look(&schedule(input)))
    }

    pub fn run_with<T>(&self, run: impl FnOnce(&Input<'_>) -> T) -> T {
        let (sets, bindings): (Vec<_>, Vec<_>) = (self.sets.iter().collect(), self.bindings.iter().collect());
        let clusters: Vec<_> = self.clusters.iter().collect();
        run(&Input {
            placement: &self.placement,
            sets: &sets,
            bindings: &bindings,
            clusters: &clusters,
            scores: &self.scores,
            decisions: &self.decisions,
            decided_generation: None,
            now: self.now,
        })
    }
}
