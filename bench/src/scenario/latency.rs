//! How long callers wait at a load that is easy for every target.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use super::About;
use super::closed_loop::micros;
use crate::caller::repeater::Repeater;
use crate::caller::{closed, open};
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, DIRECT, Figure, GO, Goal, HAPROXY, KARMADA, NGINX, OURS, Sample, Target};
use crate::latency::percentiles;
use crate::proxies::{self, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upstream::SMALL;

const TARGETS: [Target; 11] =
    [DIRECT, OURS, OURS_CALLER, OURS_KARMADA, OURS_KCP, OURS_USER_SERVER, BASELINE, GO, NGINX, HAPROXY, KARMADA];
const CONNECTIONS: usize = 4;
/// Share of the capacity of the Go gateway, the slowest.
const SHARE: f64 = 0.2;
/// Length of the trial that finds its capacity.
const TRIAL: Duration = Duration::from_secs(2);
/// A second, where there is no Go gateway.
const DEFAULT_RATE: f64 = 1000.0;
const P50: Figure = Figure::new("p50_us", "p50 µs", 0);
const P99: Figure = Figure::new("p99_us", "p99 µs", 0);
const RATE: Figure = Figure::new("rps", "requests per second (given)", 0);
const CPU: Figure = Figure::new("cpu_us", "CPU µs per request", 1);

struct Arriving {
    route: Rc<Route>,
    caller: Repeater,
    rate: f64,
}

pub const ABOUT: About = About {
    name: "latency",
    title: "Latency at a fifth of the Go gateway's capacity",
    method: "1 KiB GETs that arrive at the same rate for every target, a fifth of the Go gateway's capacity in this \
         run (1,000 a second without it). Our own client sends them, with exponential pauses from one seed, in turns \
         over 4 HTTP/2 connections. Latency counts from the moment a request was due, not from when it was sent, so \
         that a stall counts for every request that it delays (coordinated omission). Goals are about added latency: \
         the direct path's percentile of the same round is subtracted first.",
    figures: &[P50, P99, RATE, CPU],
    goals: &[
        Goal::ratio("p50_us", OURS, GO).over(DIRECT).must(Bound::AtMost(0.25)),
        Goal::ratio("p99_us", OURS, GO).over(DIRECT).must(Bound::AtMost(0.25)),
        Goal::ratio("p50_us", OURS, HAPROXY).over(DIRECT).aim(Bound::AtMost(1.0)),
        Goal::ratio("p99_us", OURS, HAPROXY).over(DIRECT).aim(Bound::AtMost(1.0)),
        Goal::ratio("cpu_us", OURS_KARMADA, OURS_CALLER).must(Bound::AtMost(1.03)),
        // Requests that arrive alone spend most of their time in the kernel, which is the same.
        Goal::ratio("cpu_us", OURS_KARMADA, KARMADA).must(Bound::AtMost(1.0 / 10.0)).aim(Bound::AtMost(1.0 / 20.0)),
        Goal::ratio("cpu_us", OURS_KCP, OURS).must(Bound::AtMost(1.03)),
        Goal::ratio("cpu_us", OURS_USER_SERVER, OURS).must(Bound::AtMost(1.03)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    let rate = capacity(testbed).map_or(DEFAULT_RATE, |capacity| capacity * SHARE);
    TARGETS.iter().map(|&target| Contender::new(target, Arriving::new(testbed, target, rate))).collect()
}

/// Capacity of the Go gateway, in requests per second.
fn capacity(testbed: &mut Testbed) -> Result<f64> {
    let caller = Repeater::new(&*proxies::route(testbed, GO)?, SMALL, None, None)?;
    let time = if testbed.smoke { TRIAL / 10 } else { TRIAL };
    let summary = runtime()?.block_on(closed::run(&caller, CONNECTIONS, 8, time))?;
    Ok(summary.requests / summary.elapsed.as_secs_f64())
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

// === impl Arriving ===

impl Arriving {
    fn new(testbed: &mut Testbed, target: Target, rate: f64) -> Result<Self> {
        let route = proxies::route(testbed, target)?;
        Ok(Self { caller: Repeater::new(&route, SMALL, None, None)?, route, rate })
    }
}

impl Load for Arriving {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let before = self.route.tree.usage()?;
        let latencies = runtime()?.block_on(open::run(&self.caller, CONNECTIONS, self.rate, time))?;
        let cpu = self.route.tree.cpu_since(before)?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let requests = latencies.len() as f64;
        let (p50, p99) = percentiles(latencies)?;
        Ok(Sample::from([(P50.key, p50), (P99.key, p99), (RATE.key, self.rate), (CPU.key, micros(cpu) / requests)]))
    }
}
