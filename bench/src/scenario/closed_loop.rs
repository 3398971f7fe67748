//! Requests as fast as they are answered, a fixed number at once: the cost of a request, and the
//! rate.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use crate::contender::{Contender, Load};
use crate::figure::{Figure, Sample, Target};
use crate::h2load::{Amount, H2load, Shape};
use crate::proxies;
use crate::route::Route;
use crate::testbed::Testbed;
use harness::usage::Usage;

pub const CPU: Figure = Figure::new("cpu_us", "CPU µs per request", 1);
pub const RATE: Figure = Figure::new("rps", "requests per second", 0);
pub const MEAN: Figure = Figure::new("mean_us", "mean latency µs", 0);
pub const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);
pub const FIGURES: [Figure; 4] = [CPU, RATE, MEAN, RESIDENT];

/// h2load with `shape` on one way; the shape's amount is replaced by the round's time.
pub struct ClosedLoop {
    tool: H2load,
    route: Rc<Route>,
    shape: Shape,
}

/// A contender for each of `targets`.
pub fn contenders(testbed: &mut Testbed, targets: &[Target], shape: &Shape) -> Vec<Contender> {
    targets
        .iter()
        .map(|&target| Contender::new(target, ClosedLoop::new(proxies::route(testbed, target), shape)))
        .collect()
}

// === impl ClosedLoop ===

impl ClosedLoop {
    pub fn new(route: Result<Rc<Route>>, shape: &Shape) -> Result<Self> {
        Ok(Self { tool: H2load::find()?, route: route?, shape: shape.clone() })
    }
}

impl Load for ClosedLoop {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let before = self.route.tree.usage()?;
        self.shape.amount = Amount::For(time);
        let summary = self.tool.run(&self.route, &self.shape)?;
        sample(&self.route, before, summary.requests, summary.elapsed, Some(summary.mean))
    }
}

/// The cost of `requests` in `elapsed` on `route` since `before`.
pub fn sample(
    route: &Route,
    before: Usage,
    requests: f64,
    elapsed: Duration,
    mean: Option<Duration>,
) -> Result<Sample> {
    let after = route.tree.usage()?;
    let cpu = after.cpu.saturating_sub(before.cpu);
    let mut sample = Sample::from([
        (CPU.key, cpu.as_secs_f64() * 1e6 / requests),
        (RATE.key, requests / elapsed.as_secs_f64()),
        (RESIDENT.key, mebibytes(after.resident)),
    ]);
    sample.extend(mean.map(|mean| (MEAN.key, micros(mean))));
    Ok(sample)
}

pub fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
pub fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
