//! Placements on a real hub: which run when one cluster changes, and how soon an edit is decided.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use hub_tests::{tools, wait};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use super::About;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::controllers::Controllers;
use crate::figure::{Bound, Figure, Goal, OURS, Sample};
use crate::hub_objects;
use crate::latency::percentiles;
use crate::testbed::{HubSide, Testbed};

const FLIP_CPU: Figure = Figure::new("flip_cpu_ms", "CPU ms per flip", 2);
const FLIP_RUNS: Figure = Figure::new("flip_runs", "runs per flip", 1);
const EDIT_P50: Figure = Figure::new("edit_p50_ms", "ms from an edit to its decisions, p50", 0);
const EDIT_P99: Figure = Figure::new("edit_p99_ms", "p99", 0);
const EDIT_WRITES: Figure = Figure::new("edit_writes", "writes per edit", 1);
const RESIDENT: Figure = Figure::new("rss_mb", "RSS MB", 1);

pub const ABOUT: About = About {
    name: "placements",
    title: "1,000 Placements on a real hub",
    method: "The controllers with the part `placement`, and 2,000 clusters in a set that 990 Placements choose one \
             of each, and that another chooses 1,000 of. 20 clusters are in a set that 10 Placements see. First, \
             one of those 20 gets another label again and again, by which it enters and leaves all ten choices: all \
             CPU time and runs until the last decisions and statuses are written, divided by the flips. Each of the \
             ten runs twice, once more on what it wrote itself. Then the Placement of 1,000 clusters is edited again \
             and again so that its ten decisions name the other 1,000: from sending the edit until a list of the \
             decisions has them all, and all writes of decisions and status, divided by the edits.",
    figures: &[FLIP_CPU, FLIP_RUNS, EDIT_P50, EDIT_P99, EDIT_WRITES, RESIDENT],
    goals: &[
        Goal::value(FLIP_CPU.key, OURS).must(Bound::AtMost(20.0)),
        Goal::value(FLIP_RUNS.key, OURS).must(Bound::AtMost(20.0)),
        Goal::value(EDIT_P99.key, OURS).must(Bound::AtMost(300.0)),
        Goal::value(EDIT_WRITES.key, OURS).must(Bound::AtMost(11.0)),
    ],
    axis: None,
};

const GROUP: &str = "cluster.open-cluster-management.io";
const KINDS: [&str; 4] =
    ["cluster/v1/0000_00", "cluster/v1alpha1/0000_05", "cluster/v1beta1/0000_0", "cluster/v1beta2/0000_0"];
const RUNS: &str = "cluster_gateway_placement_schedule_duration_seconds_count";
const WRITES: &str = "cluster_gateway_placement_writes_total";
const DECISIONS: &str = "cluster_gateway_placement_decisions";
/// Namespaces, and the sets that are bound there.
const FEW: &str = "bench-few";
const MANY: &str = "bench-many";
const EDITED: &str = "bench-edited";
/// Placements that see the cluster that changes, and clusters that they see.
const SEEING: usize = 10;
const SEEN: usize = 20;
/// Limit for everything to be decided at first.
const FIRST: Duration = Duration::from_mins(3);
/// For the effects of a change.
const LIMIT: Duration = Duration::from_secs(30);
/// Time without a run or a write after which it is done.
const REST: Duration = Duration::from_millis(500);
/// Pause between two looks at the decisions.
const PAUSE: Duration = Duration::from_millis(5);

/// How much there is.
#[derive(Clone, Copy)]
struct Size {
    /// Clusters that are chosen at once; there are twice as many.
    chosen: usize,
    /// Placements that do not see the cluster that changes.
    others: usize,
}

struct Placements {
    controllers: Controllers,
    hub: Caller,
    size: Size,
    /// Whether the cluster that changes is chosen, and whether the second half is.
    is_on: bool,
    is_second: bool,
    runtime: Runtime,
    _side: Rc<HubSide>,
}

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let size = if testbed.smoke { Size { chosen: 50, others: 20 } } else { Size { chosen: 1000, others: 990 } };
    let side = testbed.hub()?;
    Ok(vec![Contender::new(OURS, Placements::start(testbed, side, size))])
}

// === impl Placements ===

impl Placements {
    fn start(testbed: &Testbed, side: Rc<HubSide>, size: Size) -> Result<Self> {
        let server = &side.hub.server;
        side.install(&tools::kinds("open-cluster-management.io/api", &KINDS)?)?;
        side.hub.apply(&ground())?;
        let hub = Caller::with_certificate(server.address(), server.authority(), server.admin());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let clusters = 2 * size.chosen + SEEN;
        runtime.block_on(hub_objects::create(&hub, clusters, Arc::new(move |number| Ok(cluster(number, size)))))?;
        let placements = SEEING + size.others + 1;
        runtime.block_on(hub_objects::create(&hub, placements, Arc::new(|number| Ok(placement(number)))))?;
        let mut controllers = Controllers::start(testbed, &side, "placement", &[])?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let decided = (SEEING * SEEN / 2 + size.others + size.chosen) as f64;
        wait::until("all to be decided", FIRST, || {
            let now = controllers.metric(DECISIONS)?;
            ensure!(now >= decided, "{now} of {decided}");
            Ok(())
        })?;
        controllers.settled(RUNS, 2 * REST, FIRST)?;
        Ok(Self { controllers, hub, size, is_on: true, is_second: false, runtime, _side: side })
    }

    /// CPU milliseconds and runs of each flip.
    fn flip(&mut self, time: Duration) -> Result<(f64, f64)> {
        let (runs, before, begin, mut flips) =
            (self.controllers.metric(RUNS)?, self.controllers.tree.usage()?, Instant::now(), 0);
        while begin.elapsed() < time {
            self.is_on = !self.is_on;
            let state = if self.is_on { "on" } else { "off" };
            let path = format!("/apis/{GROUP}/v1/managedclusters/few-00000");
            let chosen = SEEING * (SEEN / 2 - usize::from(!self.is_on));
            let change = json!({"metadata": {"labels": {"state": state}}});
            self.runtime.block_on(changed(&self.hub, &path, &change, FEW, |text| count(text, "few-") == chosen))?;
            flips += 1;
        }
        self.controllers.settled(WRITES, REST, LIMIT)?;
        let cpu = self.controllers.tree.cpu_since(before)?.as_secs_f64() * 1e3;
        let runs = self.controllers.metric(RUNS)? - runs;
        Ok((cpu / f64::from(flips), runs / f64::from(flips)))
    }

    /// Time of each edit, and the writes of one.
    fn edit(&mut self, time: Duration) -> Result<(Vec<Duration>, f64)> {
        let (writes, begin, mut taken) = (self.controllers.metric(WRITES)?, Instant::now(), Vec::new());
        while begin.elapsed() < time {
            self.is_second = !self.is_second;
            let halves = if self.is_second { ["b-", "a-"] } else { ["a-", "b-"] };
            let path = format!("/apis/{GROUP}/v1beta1/namespaces/{EDITED}/placements/{EDITED}");
            let change = json!({"spec": choosing("half", &halves[0][..1])});
            let chosen = self.size.chosen;
            let is_done = |text: &str| count(text, halves[0]) == chosen && count(text, halves[1]) == 0;
            taken.push(self.runtime.block_on(changed(&self.hub, &path, &change, EDITED, is_done))?);
            // Each edit is written to its end; otherwise, the next would save writes.
            self.controllers.settled(WRITES, REST, LIMIT)?;
        }
        let writes = self.controllers.metric(WRITES)? - writes;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let edits = taken.len() as f64;
        Ok((taken, writes / edits))
    }
}

impl Load for Placements {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let (cpu, runs) = self.flip(time)?;
        let (taken, writes) = self.edit(2 * time)?;
        let (p50, p99) = percentiles(taken)?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let resident = self.controllers.tree.usage()?.resident as f64;
        Ok([
            (FLIP_CPU.key, cpu),
            (FLIP_RUNS.key, runs),
            (EDIT_P50.key, p50 / 1e3),
            (EDIT_P99.key, p99 / 1e3),
            (EDIT_WRITES.key, writes),
            (RESIDENT.key, resident / 1e6),
        ]
        .into())
    }
}

/// Changes an object, and polls the decisions of `namespace` until `is_done`: returns the time from
/// sending the change.
async fn changed(
    hub: &Caller,
    path: &str,
    change: &Value,
    namespace: &str,
    is_done: impl Fn(&str) -> bool,
) -> Result<Duration> {
    let connection: SendRequest<Bytes> = hub.connect().await?;
    let request = hub.merge(path, change)?;
    let begin = Instant::now();
    hub.ask(&connection, request).await?;
    let list = format!("/apis/{GROUP}/v1beta1/namespaces/{namespace}/placementdecisions");
    loop {
        let text = hub.ask(&connection, hub.get(&list)?).await?;
        if is_done(&String::from_utf8_lossy(&text)) {
            return Ok(begin.elapsed());
        }
        ensure!(begin.elapsed() < LIMIT, "the decisions of {namespace} do not follow");
        sleep(PAUSE).await;
    }
}

/// How often decisions name a cluster whose name begins so.
fn count(decisions: &str, beginning: &str) -> usize {
    decisions.matches(&format!("\"clusterName\":\"{beginning}")).count()
}

/// Namespaces, sets and bindings.
fn ground() -> Vec<Value> {
    let set = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": name},
            "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})
    };
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let binding = |(namespace, set): (&str, &str)| {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": {"name": set, "namespace": namespace}, "spec": {"clusterSet": set}})
    };
    let mut objects: Vec<Value> = [FEW, MANY, EDITED].map(namespace).into();
    objects.extend([FEW, MANY].map(set));
    objects.extend([(FEW, FEW), (MANY, MANY), (EDITED, MANY)].map(binding));
    objects
}

/// The first are the few.
fn cluster(number: usize, size: Size) -> (String, Value) {
    let (name, set, half) = match number.checked_sub(SEEN) {
        None => (format!("few-{number:05}"), FEW, ""),
        Some(at) if at < size.chosen => (format!("a-{at:05}"), MANY, "a"),
        Some(at) => (format!("b-{:05}", at - size.chosen), MANY, "b"),
    };
    let state = if number.is_multiple_of(2) { "on" } else { "off" };
    let labels = json!({format!("{GROUP}/clusterset"): set, "half": half, "state": state});
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}});
    (format!("/apis/{GROUP}/v1/managedclusters"), object)
}

/// The first are the seeing, then comes the one that is edited.
fn placement(number: usize) -> (String, Value) {
    let (namespace, name, spec) = match number {
        ..SEEING => (FEW, format!("few-{number}"), choosing("state", "on")),
        SEEING => (EDITED, EDITED.to_owned(), choosing("half", "a")),
        _ => (MANY, format!("many-{number}"), json!({"numberOfClusters": 1})),
    };
    let object = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    (format!("/apis/{GROUP}/v1beta1/namespaces/{namespace}/placements"), object)
}

/// A selector of all clusters with this label.
fn choosing(label: &str, value: &str) -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert(label.to_owned(), value.into());
    json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}]})
}
