//! Upgraded connections: the time of an echo, and the cost of bytes.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};
use tokio::time::Instant;

use super::About;
use crate::contender::{Contender, Load};
use crate::figure::{Bound, DIRECT, Figure, GO, Goal, HAPROXY, NGINX, OURS, Sample, Target};
use crate::latency::percentiles;
use crate::proxies;
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upgrade::Echo;
use crate::upgrade::caller::Upgraded;

struct EchoLoad(Through);
struct BulkLoad(Through);

struct Through {
    route: Route,
    runtime: Runtime,
    _upstream: Rc<Echo>,
}

const TARGETS: [Target; 5] = [DIRECT, OURS, GO, NGINX, HAPROXY];
const MIB: f64 = (1 << 20) as f64;

/// Keystrokes.
pub const ECHO: About = About {
    name: "exec-echo",
    title: "exec: one keystroke and its echo",
    method: "One connection is upgraded (`SPDY/3.1`, TLS on both sides; no proxy looks inside) to an upstream that \
         echoes. The client sends 64 bytes, and the next 64 when they are back, for the whole time. The upstream and \
         the client are programs of this bench.",
    figures: &[
        Figure::new("p50_us", "µs for an echo, p50", 0),
        Figure::new("p99_us", "p99", 0),
        Figure::new("cpu_us", "CPU µs per echo", 1),
    ],
    goals: &[
        Goal::ratio("p50_us", OURS, GO).over(DIRECT).must(Bound::AtMost(1.0 / 3.0)),
        Goal::ratio("p50_us", OURS, HAPROXY).over(DIRECT).aim(Bound::AtMost(1.0)),
    ],
    axis: None,
};

/// A copied file.
pub const BULK: About = About {
    name: "exec-bulk",
    title: "exec: bytes in both directions",
    method: "As above, but the client writes pieces of 32 KiB without waiting while it reads the echo. A MiB counts \
         when it has gone there and back.",
    figures: &[Figure::new("cpu_ms", "CPU ms per MiB", 2), Figure::new("mib_s", "MiB/s there and back", 0)],
    goals: &[
        Goal::ratio("cpu_ms", OURS, GO).aim(Bound::AtMost(1.0)),
        Goal::ratio("cpu_ms", OURS, HAPROXY).aim(Bound::AtMost(1.0)),
    ],
    axis: None,
};

pub fn echo(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    contenders(testbed, EchoLoad)
}

pub fn bulk(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    contenders(testbed, BulkLoad)
}

fn contenders<L: Load + 'static>(testbed: &mut Testbed, load: fn(Through) -> L) -> Result<Vec<Contender>> {
    let upstream = Rc::new(Echo::start(testbed)?);
    let contender = |&target| Contender::new(target, Through::start(testbed, target, &upstream).map(load));
    Ok(TARGETS.iter().map(contender).collect())
}

// === impl Through ===

impl Through {
    fn start(testbed: &mut Testbed, target: Target, upstream: &Rc<Echo>) -> Result<Self> {
        let route = proxies::start_to(testbed, target, upstream.destination())?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { route, runtime, _upstream: Rc::clone(upstream) })
    }
}

// === impl EchoLoad ===

impl Load for EchoLoad {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let Self(Through { route, runtime, .. }) = self;
        let mut upgraded = runtime.block_on(Upgraded::open(route))?;
        let before = route.tree.usage()?;
        let taken = runtime.block_on(upgraded.echo_until(Instant::now() + time))?;
        let cpu = route.tree.cpu_since(before)?;
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 echoes")]
        let count = taken.len() as f64;
        let (p50, p99) = percentiles(taken)?;
        Ok(Sample::from([("p50_us", p50), ("p99_us", p99), ("cpu_us", cpu.as_secs_f64() * 1e6 / count)]))
    }
}

// === impl BulkLoad ===

impl Load for BulkLoad {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let Self(Through { route, runtime, .. }) = self;
        let upgraded = runtime.block_on(Upgraded::open(route))?;
        let (before, start) = (route.tree.usage()?, Instant::now());
        let bytes = runtime.block_on(upgraded.stream_until(start + time))?;
        let (cpu, taken) = (route.tree.cpu_since(before)?, start.elapsed());
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 bytes")]
        let mebibytes = bytes as f64 / MIB;
        Ok(Sample::from([("cpu_ms", cpu.as_secs_f64() * 1e3 / mebibytes), ("mib_s", mebibytes / taken.as_secs_f64())]))
    }
}
