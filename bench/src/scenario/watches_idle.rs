//! Memory of open watches on which nothing happens.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, Figure, GO, Goal, HAPROXY, NGINX, OURS, Sample, Target};
use crate::proxies;
use crate::route::Route;
use crate::testbed::Testbed;
use crate::watch::server::IDLE;
use crate::watch::upstream::Upstream;
use crate::watch::watchers::{Plan, Watchers};
use crate::watch::{self, memory};

const EACH: Figure = Figure::new("kib_each", "KiB RSS per watch", 2);
const LEFT: Figure = Figure::new("kib_left", "KiB left per watch after closing", 2);
const OPEN: Figure = Figure::new("open_cpu_us", "CPU µs to open one", 1);
const RESIDENT: Figure = Figure::new("open_mib", "MiB RSS with all open", 1);

const TARGETS: [Target; 5] = [OURS, BASELINE, GO, NGINX, HAPROXY];
const CLUSTER: &str = "watches-idle";
/// Limit for memory to stop changing after a start or after the last watch was opened.
const SETTLE: Duration = Duration::from_secs(5);
/// For freed memory to be given back: jemalloc keeps unused pages for ten seconds.
const GIVE_BACK: Duration = Duration::from_secs(12);
const BRIEFLY: Duration = Duration::from_secs(1);
/// Share of the watches' memory that counts as nothing left.
const NOTHING: f64 = 0.02;

struct IdleLoad {
    route: Route,
    _upstream: Rc<Upstream>,
}

pub const ABOUT: About = About {
    name: "watches-idle",
    title: "10,000 idle watches",
    method: "Each round restarts the program, sends one watch through it, reads its resident memory, then opens \
         10,000 watches over 100 HTTP/2 connections with 100 streams each; the member allows 250 streams on a \
         connection. Each watch has its response head and a line of data, and no further events. Memory is read when \
         it no longer changes (at most 5 s), and again after the client has closed all watches: the lowest value \
         within 12 s. nginx uses HTTP/1.1 to the member and so has a connection there for each watch.",
    figures: &[EACH, LEFT, OPEN, RESIDENT],
    goals: &[
        Goal::value(EACH.key, OURS).must(Bound::AtMost(6.0)),
        Goal::ratio(EACH.key, OURS, HAPROXY).aim(Bound::AtMost(1.0)),
        Goal::ratio(EACH.key, OURS, GO).aim(Bound::AtMost(0.1)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let upstream = Rc::new(Upstream::start(testbed.directory(), CLUSTER)?);
    let mut load = |target| {
        let route = proxies::start_to(testbed, target, upstream.destination())?;
        Ok(IdleLoad { route, _upstream: Rc::clone(&upstream) })
    };
    Ok(TARGETS.map(|target| Contender::new(target, load(target))).into())
}

// === impl IdleLoad ===

impl Load for IdleLoad {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        self.route.restart()?;
        watch::runtime()?.block_on(measure(&self.route, watch::plan(time)))
    }
}

async fn measure(route: &Route, plan: Plan) -> Result<Sample> {
    let short = plan.total() < watch::FULL.total();
    let (settle, give_back) = if short { (BRIEFLY, BRIEFLY) } else { (SETTLE, GIVE_BACK) };
    let caller = Caller::on(route)?;
    drop(Watchers::open(&caller, IDLE, Plan { connections: 1, streams: 1 }).await?);
    let before = memory::settled(&route.tree, settle).await?;
    let used = route.tree.usage()?;
    let mut watchers = Watchers::open(&caller, IDLE, plan).await?;
    let cpu = route.tree.cpu_since(used)?;
    let open = memory::settled(&route.tree, settle).await?;
    watchers.check()?;
    drop(watchers);
    let closed = memory::least(&route.tree, before + (open - before) * NOTHING, give_back).await?;
    let each = |bytes: f64| bytes / 1024.0 / plan.amount();
    Ok(Sample::from([
        (EACH.key, each(open - before)),
        (LEFT.key, each(closed - before)),
        (OPEN.key, cpu.as_secs_f64() * 1e6 / plan.amount()),
        (RESIDENT.key, open / f64::from(1 << 20)),
    ]))
}
