//! Delivery to many members: a start, rest, a new template, and members that are ill.

mod steps;

use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use harness::usage::Tree;
use tokio::runtime::{Builder, Runtime};

use super::About;
use crate::caller::Caller;
use crate::clusters::{Clusters, FIRST, Roots};
use crate::contender::{Contender, Load};
use crate::controllers::Controllers;
use crate::delivery::members::Members;
use crate::delivery::objects;
use crate::figure::{Bound, Figure, Goal, OURS, Sample};
use crate::proxies::{self, Registered};
use crate::route::Route;
use crate::size::Size;
use crate::testbed::{HubSide, Testbed};

const START_S: Figure = Figure::new("start_s", "s from a start until all was looked at", 1);
const START_CPU: Figure = Figure::new("start_cpu_s", "CPU s until then", 2);
const START_WRITES: Figure = Figure::new("start_writes", "hub writes until then", 0);
const REST_WRITES: Figure = Figure::new("rest_writes", "hub writes per minute at rest", 1);
const REST_REQUESTS: Figure = Figure::new("rest_requests", "member requests per minute", 1);
const REST_CORES: Figure = Figure::new("rest_cores", "cores", 4);
const REST_GATEWAY: Figure = Figure::new("rest_gateway_cores", "cores of the gateway", 4);
const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);
const TRACKED: Figure = Figure::new("tracked_kib", "KiB per object, works aside", 2);
const NEW_S: Figure = Figure::new("new_s", "s of a new template", 1);
const NEW_CPU: Figure = Figure::new("new_cpu_ms", "CPU ms per object applied", 3);
const NEW_GATEWAY: Figure = Figure::new("new_gateway_cpu_ms", "of the gateway", 3);
const NEW_WRITES: Figure = Figure::new("new_writes", "hub writes per work", 2);
const OF_SETS: Figure = Figure::new("new_set_writes", "hub writes of the set itself", 0);
const NEW_RESIDENT: Figure = Figure::new("new_rss", "RSS after / before", 3);
const P50: Figure = Figure::new("p50_ms", "ms of a change, p50", 1);
const P99: Figure = Figure::new("p99_ms", "p99", 1);
const ILL_P50: Figure = Figure::new("ill_p50", "p50 beside ill members / without", 3);
const ILL_P99: Figure = Figure::new("ill_p99", "p99 likewise", 3);

pub const ABOUT: About = About {
    name: "delivery",
    title: "ManifestWorks in many clusters",
    method: "The controllers with the parts `manifestworks` and `replica-sets`, a real hub, a gateway of ours, and \
             scripted members behind it: one process that keeps what is written to each, has its watches, and says \
             on each watch every minute that nothing happened. `--clusters` and `--objects` say how many there are \
             (50 and 10, in ManifestWorks of ten ConfigMaps; each cluster has one more work of one). The controllers \
             are started anew, and are done when neither members nor hub have been asked for three seconds. Then \
             nothing happens for twelve times `--seconds`, and with 1,000 clusters for at least six minutes: what \
             cannot be watched is listed every four, and watches end after five. Then a ManifestWorkReplicaSet with \
             ten objects for every cluster gets another template, rollout All. Last, the single object of one \
             cluster after the other is \
             changed on the hub, and timed until the member has it; then again, while one member hangs and another \
             is away every other second, whose works change each second too. Hub writes are counted by the hub: OCM's \
             kinds and Events, without what the bench writes; of a new template, those of the set itself (its \
             status) are a figure of their own. CPU is that of the controllers unless it says \
             otherwise. KiB per object are beside the works that are kept \
             (`cluster_gateway_delivery_kept_bytes`), and beside what the controllers take while there is no cluster \
             to deliver to. Open Cluster Management's work agent has no row: it is a process in each cluster, and \
             a thousand of them do not fit on one machine.",
    figures: &[
        START_S,
        START_CPU,
        START_WRITES,
        REST_WRITES,
        REST_REQUESTS,
        REST_CORES,
        REST_GATEWAY,
        RESIDENT,
        TRACKED,
        NEW_S,
        NEW_CPU,
        NEW_GATEWAY,
        NEW_WRITES,
        OF_SETS,
        NEW_RESIDENT,
        P50,
        P99,
        ILL_P50,
        ILL_P99,
    ],
    goals: &[
        Goal::value(START_S.key, OURS).must(Bound::AtMost(180.0)),
        Goal::value(START_WRITES.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(REST_WRITES.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(REST_REQUESTS.key, OURS).must(Bound::AtMost(0.0)),
        Goal::value(REST_CORES.key, OURS).must(Bound::AtMost(0.02)),
        Goal::value(RESIDENT.key, OURS).must(Bound::AtMost(350.0)),
        Goal::value(TRACKED.key, OURS).must(Bound::AtMost(1.0)),
        Goal::value(NEW_CPU.key, OURS).must(Bound::AtMost(1.0)),
        Goal::value(NEW_WRITES.key, OURS).must(Bound::AtMost(2.0)),
        Goal::value(NEW_RESIDENT.key, OURS).must(Bound::AtMost(1.05)),
        Goal::value(ILL_P50.key, OURS).must(Bound::AtMost(1.1)),
        Goal::value(ILL_P99.key, OURS).must(Bound::AtMost(1.1)),
    ],
    axis: None,
};

const PARTS: &str = "manifestworks,replica-sets";
/// So many clusters are measured over a time in which every watch ends and begins again, and every
/// list is repeated.
const FLEET: usize = 1_000;
const WATCHES_END: Duration = Duration::from_mins(6);
/// Of the Secrets of the clusters.
const NAMESPACE: &str = "delivery";

struct Delivery {
    controllers: Controllers,
    hub: Caller,
    members: Rc<Members>,
    gateway: Route,
    size: Size,
    /// Memory of the controllers while there is no cluster to deliver to, in bytes, without the
    /// works that they keep.
    idle: f64,
    /// Makes each change another one.
    changes: u64,
    smoke: bool,
    runtime: Runtime,
    _clusters: Clusters,
    _side: Rc<HubSide>,
}

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    let size = if testbed.smoke { Size::SMOKE } else { testbed.size };
    let delivery = Delivery::start(testbed, size);
    vec![Contender::new(OURS, delivery)]
}

// === impl Delivery ===

impl Delivery {
    fn start(testbed: &mut Testbed, size: Size) -> Result<Self> {
        let side = testbed.hub()?;
        let members = Rc::new(Members::start(testbed.directory())?);
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let server = &side.hub.server;
        let hub = Caller::with_certificate(server.address(), server.authority(), server.admin());
        let (count, roots) = (size.clusters, Roots::Shared);
        let clusters = Clusters::register(&runtime, &side, NAMESPACE, count, &members.stand_in, roots)?;
        let registered = Registered { namespace: Some(NAMESPACE), ..Registered::default() };
        let gateway = proxies::start_registered(testbed, OURS, members.called(FIRST), registered)?;
        objects::lay(&runtime, &side, &hub, size)?;
        let flags = way(testbed, &side, &gateway)?;
        let controllers = Controllers::start(testbed, &side, PARTS, &flags)?;
        let (idle, changes, smoke) = (0.0, 0, testbed.smoke);
        let mut delivery = Self {
            controllers,
            hub,
            members,
            gateway,
            size,
            idle,
            changes,
            smoke,
            runtime,
            _clusters: clusters,
            _side: Rc::clone(&side),
        };
        delivery.deliver().context("it is not delivered")?;
        Ok(delivery)
    }

    fn deliver(&mut self) -> Result<()> {
        self.runtime.block_on(objects::works(&self.hub, self.size))?;
        self.runtime.block_on(objects::open(&self.hub, self.size))?;
        self.wait_applied()?;
        self.runtime.block_on(objects::close(&self.hub))?;
        self.controllers.restart()?;
        self.quiet()?;
        self.idle = self.resident()? - self.kept()?;
        self.runtime.block_on(objects::open(&self.hub, self.size))?;
        self.wait_applied().map(drop)
    }

    /// For how long nothing happens.
    fn rest_time(&self, time: Duration) -> Duration {
        let least = if self.size.clusters >= FLEET { WATCHES_END } else { Duration::ZERO };
        if self.smoke { time } else { (12 * time).max(least) }
    }

    fn trees(&self) -> [&Tree; 2] {
        [&self.controllers.tree, &self.gateway.tree]
    }
}

impl Load for Delivery {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        if !self.smoke && time < WARM_UP {
            let _ = self.change_each(time)?;
            return Ok(Sample::new());
        }
        let mut sample = self.start_anew()?;
        sample.extend(self.rest(self.rest_time(time))?);
        sample.extend(self.new_template()?);
        sample.extend(self.ill(time)?);
        Ok(sample)
    }
}

/// A measurement that is asked for less time than this is not one that counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// The controllers' way to members: the gateway itself.
fn way(testbed: &Testbed, side: &HubSide, gateway: &Route) -> Result<Vec<String>> {
    let (ca, token) = (testbed.file("delivery-ca.pem"), testbed.file("delivery-token"));
    std::fs::write(&ca, gateway.trusted.root_pem())?;
    std::fs::write(&token, &side.token)?;
    Ok(vec![
        format!("--gateway-url=https://{}", gateway.address),
        format!("--gateway-ca-file={}", ca.display()),
        format!("--gateway-token-file={}", token.display()),
    ])
}
