//! Placements on a real hub: which run when one cluster changes, and how soon an edit is decided.

mod objects;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use hub_tests::tools;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use self::objects::choosing;
use super::About;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::controllers::Controllers;
use crate::figure::{Bound, Figure, Goal, OCM, OURS, Sample};
use crate::given;
use crate::hub_objects;
use crate::latency::percentiles;
use crate::metrics::Asked;
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
             decisions has them all, and all writes of decisions and status, divided by the edits. The hub counts \
             the writes. A change has had its effect when nothing was written for half a second in which the program \
             used less than 10 ms of CPU. With `--ocm-placement`, Open Cluster Management's scheduler gets the same \
             objects, with its own limit of 50 requests a second; the two take turns on one hub. Each is started for \
             its measurement, which begins when it has followed a first flip and come to rest, and is stopped after \
             it. A change whose decisions do not come within two minutes fails its target.",
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
/// Namespaces, and the sets that are bound there.
const FEW: &str = "bench-few";
const MANY: &str = "bench-many";
const EDITED: &str = "bench-edited";
/// Placements that see the cluster that changes, and clusters that they see.
const SEEING: usize = 10;
const SEEN: usize = 20;
/// Limit for everything to be decided at first: upstream's takes tens of milliseconds for each.
const FIRST: Duration = Duration::from_mins(10);
/// For the effects of a change.
const LIMIT: Duration = Duration::from_mins(2);
/// Time without a write after which it is done, unless the program still works.
const REST: Duration = Duration::from_millis(500);
/// CPU time within [`REST`] that is no work.
const IDLE: Duration = Duration::from_millis(10);
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

/// The objects on the hub, which all targets change.
struct Fixture {
    hub: Caller,
    size: Size,
    /// Whether the cluster that changes is chosen, and whether the second half is.
    is_on: Cell<bool>,
    is_second: Cell<bool>,
    runtime: Runtime,
    side: Rc<HubSide>,
}

struct Placements {
    controllers: Controllers,
    fixture: Rc<Fixture>,
    /// They run only while they are measured, because others decide at other times.
    takes_turns: bool,
}

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let size = if testbed.smoke { Size { chosen: 50, others: 20 } } else { Size { chosen: 1000, others: 990 } };
    let side = testbed.hub()?;
    let fixture = Rc::new(Fixture::lay(side, size)?);
    let ours = Placements::start(testbed, &fixture);
    Ok(vec![Contender::new(OURS, ours), Contender::new(OCM, Placements::of_ocm(testbed, fixture))])
}

// === impl Fixture ===

impl Fixture {
    fn lay(side: Rc<HubSide>, size: Size) -> Result<Self> {
        let server = &side.hub.server;
        side.install(&tools::kinds("open-cluster-management.io/api", &KINDS)?)?;
        side.hub.apply(&objects::ground())?;
        let hub = Caller::with_certificate(server.address(), server.authority(), server.admin());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let clusters = 2 * size.chosen + SEEN;
        let make = move |number: usize| Ok(objects::cluster(number, size));
        runtime.block_on(hub_objects::create(&hub, clusters, Arc::new(make)))?;
        let placements = SEEING + size.others + 1;
        runtime.block_on(hub_objects::create(&hub, placements, Arc::new(|number| Ok(objects::placement(number)))))?;
        Ok(Self { hub, size, is_on: Cell::new(true), is_second: Cell::new(false), runtime, side })
    }

    /// Choices in all decisions together.
    fn chosen(&self) -> usize {
        SEEING * (SEEN / 2 - usize::from(!self.is_on.get())) + self.size.others + self.size.chosen
    }

    /// Writes of decisions and statuses on the hub.
    fn writes(&self) -> Result<f64> {
        self.runtime.block_on(async {
            let connection = self.hub.connect().await?;
            let text = self.hub.ask(&connection, self.hub.get("/metrics")?).await?;
            Ok(Asked::of(&String::from_utf8_lossy(&text), is_of_a_scheduler).writes)
        })
    }

    /// Lets the cluster enter or leave, and returns the time until all ten decisions say so.
    fn flip(&self, limit: Duration) -> Result<Duration> {
        self.is_on.set(!self.is_on.get());
        let state = if self.is_on.get() { "on" } else { "off" };
        let path = format!("/apis/{GROUP}/v1/managedclusters/few-00000");
        let chosen = SEEING * (SEEN / 2 - usize::from(!self.is_on.get()));
        let change = json!({"metadata": {"labels": {"state": state}}});
        let is_done = |text: &str| count(text, "few-") == chosen;
        self.runtime.block_on(changed(&self.hub, (path.as_str(), &change), FEW, limit, is_done))
    }

    /// Has the other half chosen, and returns the time until all decisions say so.
    fn edit(&self) -> Result<Duration> {
        self.is_second.set(!self.is_second.get());
        let halves = if self.is_second.get() { ["b-", "a-"] } else { ["a-", "b-"] };
        let path = format!("/apis/{GROUP}/v1beta1/namespaces/{EDITED}/placements/{EDITED}");
        let change = json!({"spec": choosing("half", &halves[0][..1])});
        let is_done = |text: &str| count(text, halves[0]) == self.size.chosen && count(text, halves[1]) == 0;
        self.runtime.block_on(changed(&self.hub, (path.as_str(), &change), EDITED, LIMIT, is_done))
    }

    /// Waits until everything is decided.
    fn wait_decided(&self) -> Result<()> {
        let begin = Instant::now();
        self.runtime.block_on(async {
            let connection = self.hub.connect().await?;
            let list = format!("/apis/{GROUP}/v1beta1/placementdecisions");
            loop {
                let text = self.hub.ask(&connection, self.hub.get(&list)?).await?;
                let (now, all) = (count(&String::from_utf8_lossy(&text), ""), self.chosen());
                if now >= all {
                    return Ok(());
                }
                ensure!(begin.elapsed() < FIRST, "{now} of {all} are decided");
                sleep(REST).await;
            }
        })
    }
}

// === impl Placements ===

impl Placements {
    fn start(testbed: &Testbed, fixture: &Rc<Fixture>) -> Result<Self> {
        let controllers = Controllers::start(testbed, &fixture.side, "placement", &[])?;
        let takes_turns = testbed.given.ocm_placement.is_some();
        let mut placements = Self { controllers, fixture: Rc::clone(fixture), takes_turns };
        placements.fixture.wait_decided()?;
        placements.settle(FIRST)?;
        placements.end()?;
        Ok(placements)
    }

    fn of_ocm(testbed: &Testbed, fixture: Rc<Fixture>) -> Result<Self> {
        let program = given::program(testbed.given.ocm_placement.as_ref(), "its scheduler", "--ocm-placement")?;
        let controllers = Controllers::of_ocm(testbed, &fixture.side, ("ocm-placement", program.as_path()), MANY, &[])?;
        Ok(Self { controllers, fixture, takes_turns: true })
    }

    /// Starts them for a measurement. A flip that is followed shows that they decide: their start
    /// need not write anything.
    fn begin(&mut self) -> Result<()> {
        if self.takes_turns {
            self.controllers.start_again()?;
            self.fixture.flip(FIRST)?;
            self.settle(FIRST)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.takes_turns { self.controllers.stop() } else { Ok(()) }
    }

    /// Waits until they neither write nor work.
    fn settle(&self, limit: Duration) -> Result<()> {
        let (begin, mut writes) = (Instant::now(), self.fixture.writes()?);
        loop {
            let used = self.controllers.tree.usage()?;
            self.fixture.runtime.block_on(async { sleep(REST).await });
            let (cpu, now) = (self.controllers.tree.cpu_since(used)?, self.fixture.writes()?);
            if cpu < IDLE && (now - writes).abs() < 0.5 {
                return Ok(());
            }
            ensure!(begin.elapsed() < limit, "they do not come to rest: {cpu:?} and {} writes", now - writes);
            writes = now;
        }
    }

    /// Runs of ours; upstream's are counted nowhere.
    fn runs(&mut self) -> Result<Option<f64>> {
        self.controllers.is_ours().then(|| self.controllers.metric(RUNS)).transpose()
    }

    /// CPU milliseconds and runs of each flip.
    fn flip(&mut self, time: Duration) -> Result<Sample> {
        let (runs, before, begin, mut flips) = (self.runs()?, self.controllers.tree.usage()?, Instant::now(), 0);
        while begin.elapsed() < time {
            self.fixture.flip(LIMIT)?;
            flips += 1;
        }
        self.settle(LIMIT)?;
        let cpu = self.controllers.tree.cpu_since(before)?.as_secs_f64() * 1e3;
        let mut sample = Sample::from([(FLIP_CPU.key, cpu / f64::from(flips))]);
        if let (Some(before), Some(now)) = (runs, self.runs()?) {
            sample.insert(FLIP_RUNS.key, (now - before) / f64::from(flips));
        }
        Ok(sample)
    }

    /// Time of each edit, and the writes of one.
    fn edit(&self, time: Duration) -> Result<(Vec<Duration>, f64)> {
        let (writes, begin, mut taken) = (self.fixture.writes()?, Instant::now(), Vec::new());
        while begin.elapsed() < time {
            taken.push(self.fixture.edit()?);
            // Each edit is written to its end; otherwise, the next would save writes.
            self.settle(LIMIT)?;
        }
        let writes = self.fixture.writes()? - writes;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let edits = taken.len() as f64;
        Ok((taken, writes / edits))
    }
}

impl Load for Placements {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        self.begin()?;
        let mut sample = self.flip(time)?;
        let (taken, writes) = self.edit(2 * time)?;
        let (p50, p99) = percentiles(taken)?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let resident = self.controllers.tree.usage()?.resident as f64;
        self.end()?;
        sample.extend([
            (EDIT_P50.key, p50 / 1e3),
            (EDIT_P99.key, p99 / 1e3),
            (EDIT_WRITES.key, writes),
            (RESIDENT.key, resident / 1e6),
        ]);
        Ok(sample)
    }
}

/// Whether a request with these labels writes what a scheduler writes: not what the bench does.
fn is_of_a_scheduler(labels: &str) -> bool {
    labels.contains("resource=\"placementdecisions\"")
        || (labels.contains("resource=\"placements\"") && labels.contains("subresource=\"status\""))
}

/// Changes an object, and polls the decisions of `namespace` until `is_done`: returns the time from
/// sending the change.
async fn changed(
    hub: &Caller,
    (path, change): (&str, &Value),
    namespace: &str,
    limit: Duration,
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
        ensure!(begin.elapsed() < limit, "the decisions of {namespace} do not follow");
        sleep(PAUSE).await;
    }
}

/// How often decisions name a cluster whose name begins so.
fn count(decisions: &str, beginning: &str) -> usize {
    decisions.matches(&format!("\"clusterName\":\"{beginning}")).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_decisions_and_statuses_count_and_edits_of_placements_do_not() {
        let series = |resource: &str, subresource: &str, verb: &str, count: u32| {
            let labels = format!("resource=\"{resource}\",subresource=\"{subresource}\",verb=\"{verb}\"");
            format!("apiserver_request_total{{{labels}}} {count}\n")
        };
        let text = [
            series("placementdecisions", "", "PATCH", 10),
            series("placements", "status", "PATCH", 1),
            series("placements", "", "PATCH", 70),
            series("placementdecisions", "", "LIST", 500),
        ];
        assert!((Asked::of(&text.concat(), is_of_a_scheduler).writes - 11.0).abs() < 0.1);
    }
}
