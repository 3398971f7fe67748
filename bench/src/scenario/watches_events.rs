//! The cost of events on many watches.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, sleep};

use super::About;
use crate::caller::Caller;
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, DIRECT, Figure, GO, Goal, HAPROXY, KARMADA, NGINX, OURS, Sample, Target};
use crate::latency;
use crate::proxies::{self, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::watch;
use crate::watch::server::EVENTS;
use crate::watch::upstream::Upstream;
use crate::watch::watchers::{Plan, Watchers};

const CPU: Figure = Figure::new("cpu_us", "CPU µs per event", 1);
const MEDIAN: Figure = Figure::new("p50_ms", "p50 ms from due to read", 2);
const TAIL: Figure = Figure::new("p99_ms", "p99 ms from due to read", 2);
const RATE: Figure = Figure::new("events_s", "events/s", 0);

const TARGETS: [Target; 11] =
    [DIRECT, OURS, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER, BASELINE, GO, NGINX, HAPROXY, KARMADA];
const CLUSTER: &str = "watches-events";
/// Time until every watch has had its first event, which comes within its first second.
const LEAD: Duration = Duration::from_millis(1500);

struct EventsLoad {
    route: Route,
    _upstream: Rc<Upstream>,
}

pub const ABOUT: About = About {
    name: "watches-events",
    title: "10,000 watches with an event each per second",
    method: "10,000 watches over 100 HTTP/2 connections with 100 streams each; the member sends a line of 500 bytes on \
         each once a second, at times spread evenly over the second. CPU time while events arrive is divided by the \
         events that the client read. A program that cannot keep up shows fewer events, and is measured at its best, \
         with much to send at a time. Latency runs from the time an event was due at the member, late ones included, \
         until the client has read it; timers there have a resolution of 1 ms, which the direct path shows.",
    figures: &[CPU, MEDIAN, TAIL, RATE],
    goals: &[
        Goal::ratio(CPU.key, OURS, GO).must(Bound::AtMost(1.0 / 8.0)),
        Goal::ratio(CPU.key, OURS, HAPROXY).aim(Bound::AtMost(1.0)),
        Goal::ratio(TAIL.key, OURS, GO).aim(Bound::AtMost(1.0)),
        Goal::ratio(CPU.key, OURS_KARMADA, OURS_CALLER).must(Bound::AtMost(1.03)),
        Goal::ratio(CPU.key, OURS_KARMADA, KARMADA).aim(Bound::AtMost(1.0 / 20.0)),
        Goal::ratio(CPU.key, OURS_KCP, OURS).must(Bound::AtMost(1.03)),
        Goal::ratio(CPU.key, OURS_USER_SERVER, OURS).must(Bound::AtMost(1.03)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let upstream = Rc::new(Upstream::start(testbed.directory(), CLUSTER)?);
    let mut load = |target| {
        let route = proxies::start_to(testbed, target, upstream.destination())?;
        Ok(EventsLoad { route, _upstream: Rc::clone(&upstream) })
    };
    Ok(TARGETS.map(|target| Contender::new(target, load(target))).into())
}

// === impl EventsLoad ===

impl Load for EventsLoad {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        watch::runtime()?.block_on(measure(&self.route, watch::plan(time), time))
    }
}

async fn measure(route: &Route, plan: Plan, time: Duration) -> Result<Sample> {
    let caller = Caller::on(route)?;
    let mut watchers = Watchers::open(&caller, EVENTS, plan).await?;
    sleep(LEAD).await;
    let (used, start) = (route.tree.usage()?, Instant::now());
    watchers.take();
    sleep(time).await;
    let (arrived, cpu, elapsed) = (watchers.take(), route.tree.cpu_since(used)?, start.elapsed());
    watchers.check()?;
    let events = arrived.events();
    let rate = events / elapsed.as_secs_f64();
    let (median, tail) = latency::percentiles(arrived.latencies)?;
    Ok(Sample::from([
        (CPU.key, cpu.as_secs_f64() * 1e6 / events),
        (MEDIAN.key, median / 1e3),
        (TAIL.key, tail / 1e3),
        (RATE.key, rate),
    ]))
}
