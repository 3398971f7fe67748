//! One choice among a thousand clusters.

mod ocm;

use std::hint::black_box;
use std::time::Duration;

use anyhow::Result;
use harness::usage::Tree;
use placement::index::{Decisions, Scores};
use placement::objects::{ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding, PlacementDecision};
use placement::{Input, Outcome, Prepared, schedule};
use serde_json::{Value, json};
use time::OffsetDateTime;
use tokio::time::Instant;

use self::ocm::OfOcm;
use super::About;
use crate::contender::{Contender, Load};
use crate::figure::{Bound, Figure, Goal, Sample, Target};
use crate::testbed::Testbed;

const CPU: Figure = Figure::new("cpu_ms", "CPU ms per choice", 3);
const RATE: Figure = Figure::new("decisions", "decisions per second of CPU", 0);
const ALLOCATIONS: Figure = Figure::new("allocations", "allocations per cluster", 3);

const LABELS: Target = "labels and claims";
const EXPRESSION: Target = "labels, claims and an expression";
/// The same of Open Cluster Management's scheduler.
const OCM_LABELS: Target = "ocm, labels and claims";
const OCM_EXPRESSION: Target = "ocm, labels, claims and an expression";
const CLUSTERS: usize = 1000;
const CHOSEN: usize = 300;
const NAMESPACE: &str = "team";
const SET: &str = "all";
/// Choices between two looks at the clock.
const AT_ONCE: u32 = 20;

struct Choice {
    placement: Prepared,
    set: ManagedClusterSet,
    binding: ManagedClusterSetBinding,
    clusters: Vec<ManagedCluster>,
    scores: Scores,
    decisions: Decisions,
}

pub const ABOUT: About = About {
    name: "placement",
    title: "One choice among 1,000 clusters",
    method: "The scheduler alone, in the bench's own process: 1,000 clusters of one set, three predicates of which one \
             has to match, and the prioritizers Balance, Steady, ResourceAllocatableCPU and ResourceAllocatableMemory. \
             300 clusters are chosen, and are the decision before, too. The predicates are compiled once for each \
             Placement, which is not counted. With an expression, the third predicate is one in CEL, which 433 \
             clusters come to, and match. `--ocm-schedule` does the same with Open Cluster Management's `Schedule`, \
             one choice after the other on one processor, garbage collection included; it has to choose the same \
             clusters in the same order. Its figure is of the choice alone; ours includes finding the candidates by \
             sets and bindings, the groups and the conditions.",
    figures: &[CPU, RATE, ALLOCATIONS],
    goals: &[
        Goal::value(CPU.key, LABELS).must(Bound::AtMost(0.5)),
        Goal::value(CPU.key, EXPRESSION).aim(Bound::AtMost(0.5)),
        Goal::value(ALLOCATIONS.key, LABELS).must(Bound::AtMost(1.0)),
        Goal::value(ALLOCATIONS.key, EXPRESSION).must(Bound::AtMost(1.0)),
        Goal::ratio(RATE.key, LABELS, OCM_LABELS).must(Bound::AtLeast(20.0)),
        Goal::ratio(RATE.key, EXPRESSION, OCM_EXPRESSION).must(Bound::AtLeast(20.0)),
    ],
    axis: None,
};

pub fn contenders(testbed: &Testbed) -> Vec<Contender> {
    let (labels, expression) = (exists(), expression());
    vec![
        Contender::new(LABELS, Choice::new(&labels)),
        Contender::new(EXPRESSION, Choice::new(&expression)),
        Contender::new(OCM_LABELS, OfOcm::new(testbed, "ocm-labels.json", &labels)),
        Contender::new(OCM_EXPRESSION, OfOcm::new(testbed, "ocm-expression.json", &expression)),
    ]
}

/// The third predicate, which everything matches that comes to it.
fn exists() -> Value {
    json!({"labelSelector": {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}})
}

/// Likewise.
fn expression() -> Value {
    let expression = "managedCluster.status.version.kubernetes.startsWith('v1.') && \
                      managedCluster.metadata.labels['tier'] == 'gold'";
    json!({"celSelector": {"celExpressions": [expression]}})
}

/// The Placement with this third predicate.
fn place(third: &Value) -> Value {
    let region = json!([{"key": "region", "operator": "In", "values": ["r1", "r2", "r3", "r4"]}]);
    let platform = json!([{"key": "platform", "operator": "In", "values": ["AWS"]}]);
    let selectors = [
        json!({"labelSelector": {"matchLabels": {"env": "prod"}, "matchExpressions": region}}),
        json!({"claimSelector": {"matchExpressions": platform}}),
        third.clone(),
    ];
    let coordinates = ["Balance", "Steady", "ResourceAllocatableCPU", "ResourceAllocatableMemory"];
    let configured = |name| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": name}, "weight": 1});
    json!({
        "metadata": {"namespace": NAMESPACE, "name": "place"},
        "spec": {
            "numberOfClusters": CHOSEN,
            "predicates": selectors.map(|selector| json!({"requiredClusterSelector": selector})),
            "prioritizerPolicy": {"mode": "Exact", "configurations": coordinates.map(configured)},
        },
    })
}

// === impl Choice ===

impl Choice {
    fn new(third: &Value) -> Result<Self> {
        let placement = serde_json::from_value(place(third))?;
        let choice = Self {
            placement: Prepared::new(&placement),
            set: ManagedClusterSet::from(json!({"metadata": {"name": SET}})),
            binding: ManagedClusterSetBinding { namespace: NAMESPACE.into(), name: SET.into() },
            clusters: (0..CLUSTERS).map(|at| ManagedCluster::from(cluster(at))).collect(),
            scores: Scores::default(),
            decisions: (0..CHOSEN.div_ceil(100)).map(decision).collect(),
        };
        let (chosen, why) = choice.choose(|outcome| (outcome.chosen.len(), format!("{:?}", outcome.conditions)));
        anyhow::ensure!(chosen == CHOSEN, "{chosen} clusters are chosen: {why}");
        Ok(choice)
    }

    /// Chooses once, and passes the outcome to `look`.
    fn choose<T>(&self, look: impl FnOnce(&Outcome<'_>) -> T) -> T {
        let clusters: Vec<_> = self.clusters.iter().collect();
        let (sets, bindings) = ([&self.set], [&self.binding]);
        look(&schedule(&Input {
            placement: &self.placement,
            sets: &sets,
            bindings: &bindings,
            clusters: &clusters,
            scores: &self.scores,
            decisions: &self.decisions,
            decided_generation: None,
            now: OffsetDateTime::UNIX_EPOCH,
        }))
    }

    /// The chosen clusters, best first.
    fn names(&self) -> Vec<String> {
        self.choose(|outcome| outcome.chosen.iter().map(|name| (*name).to_owned()).collect())
    }

    /// Number of chosen clusters, which takes a whole choice.
    fn count(&self) -> usize {
        self.choose(|outcome| outcome.chosen.len())
    }

    /// Calls of the allocator in one choice, for each cluster, growing included.
    fn allocations(&self) -> f64 {
        let taken = allocation_counter::measure(|| _ = black_box(self.count())).count_total;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let (taken, clusters) = (taken as f64, self.clusters.len() as f64);
        taken / clusters
    }
}

impl Load for Choice {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let own = Tree::new([std::process::id()]);
        let (before, begin, mut choices) = (own.usage()?, Instant::now(), 0);
        while begin.elapsed() < time {
            for _ in 0..AT_ONCE {
                black_box(self.count());
            }
            choices += AT_ONCE;
        }
        let cpu = own.cpu_since(before)?.as_secs_f64() / f64::from(choices);
        Ok([(CPU.key, cpu * 1000.0), (RATE.key, 1.0 / cpu), (ALLOCATIONS.key, self.allocations())].into())
    }
}

fn cluster(at: usize) -> Value {
    json!({
        "metadata": {
            "name": format!("cluster-{at:05}"),
            "labels": {
                "cluster.open-cluster-management.io/clusterset": SET, "tier": "gold", "vendor": "x",
                "env": if at.is_multiple_of(3) { "prod" } else { "dev" },
                "region": format!("r{}", at % 10), "zone": format!("z{}", at % 30),
            },
        },
        "status": {
            "version": {"kubernetes": format!("v1.{}.1", 28 + at % 8)},
            "allocatable": {"cpu": (4 + at % 64).to_string(), "memory": format!("{}Gi", 8 + at % 256)},
            "capacity": {"cpu": "68", "memory": "264Gi"},
            "clusterClaims": [
                {"name": "id.k8s.io", "value": format!("cluster-{at:05}")},
                {"name": "platform", "value": if at.is_multiple_of(2) { "AWS" } else { "GCP" }},
            ],
        },
    })
}

fn decision(at: usize) -> PlacementDecision {
    PlacementDecision {
        namespace: NAMESPACE.into(),
        name: format!("place-decision-{}", at + 1),
        placement: Some("place".into()),
        clusters: hundred(at).collect(),
    }
}

/// Names of clusters that are in one decision.
fn hundred(at: usize) -> impl Iterator<Item = String> {
    (at * 100..(at + 1) * 100).map(|at| format!("cluster-{at:05}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hash of the names that upstream's scheduler (v1.3.1) chooses of the same objects, best
    /// first, each with a line feed after it.
    const UPSTREAM: &str = "48ceb5610c0f7221ee5802e55dab9901";

    #[test]
    fn upstream_chooses_the_same_in_the_same_order() {
        for third in [exists(), expression()] {
            let choice = Choice::new(&third).expect("a choice");
            let names: String = choice.choose(|outcome| outcome.chosen.iter().flat_map(|name| [*name, "\n"]).collect());
            assert_eq!(format!("{:x}", md5::compute(&names)), UPSTREAM, "{names}");
        }
    }
}
