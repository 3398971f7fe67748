//! Small GETs over HTTP/1.1, as clients without HTTP/2 send them.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use super::About;
use super::closed_loop::{self, CPU, RATE, RESIDENT, micros};
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, DIRECT, Figure, GO, Goal, HAPROXY, KARMADA, NGINX, OURS, Sample, Target};
use crate::proxies::{self, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upstream::SMALL;
use crate::wrk::Wrk;

const TARGETS: [Target; 11] =
    [DIRECT, OURS, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER, BASELINE, GO, NGINX, HAPROXY, KARMADA];
const CONNECTIONS: usize = 32;
const P50: Figure = Figure::new("p50_us", "p50 µs", 0);
const P99: Figure = Figure::new("p99_us", "p99 µs", 0);

struct KeptAlive {
    tool: Wrk,
    route: Rc<Route>,
}

pub const ABOUT: About = About {
    name: "get-h1",
    title: "1 KiB GET over HTTP/1.1",
    method: "wrk on 32 kept-alive connections, one request at a time on each. Otherwise as over HTTP/2: TLS 1.3 on \
         both sides, one thread or worker each except for the Go programs, the token already reviewed. The latencies \
         are those of a closed loop at full load and say little; see the scenario `latency`.",
    figures: &[CPU, RATE, P50, P99, RESIDENT],
    goals: &[
        Goal::ratio("cpu_us", OURS, GO).must(Bound::AtMost(1.0 / 8.0)),
        Goal::ratio("cpu_us", OURS, NGINX).must(Bound::AtMost(1.3)).aim(Bound::AtMost(1.0)),
        Goal::ratio("cpu_us", OURS_KARMADA, OURS_CALLER).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_us", OURS_KARMADA, KARMADA).must(Bound::AtMost(1.0 / 20.0)),
        Goal::ratio("cpu_us", OURS_KCP, OURS).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_us", OURS_USER_SERVER, OURS).must(Bound::AtMost(1.03)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    TARGETS.iter().map(|&target| Contender::new(target, KeptAlive::new(testbed, target))).collect()
}

// === impl KeptAlive ===

impl KeptAlive {
    fn new(testbed: &mut Testbed, target: Target) -> Result<Self> {
        Ok(Self { tool: Wrk::find()?, route: proxies::route(testbed, target)? })
    }
}

impl Load for KeptAlive {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let before = self.route.tree.usage()?;
        let summary = self.tool.run(&self.route, SMALL, CONNECTIONS, time)?;
        let mut sample = closed_loop::sample(&self.route, before, summary.requests, summary.elapsed, None)?;
        sample.extend([(P50.key, micros(summary.p50)), (P99.key, micros(summary.p99))]);
        Ok(sample)
    }
}
