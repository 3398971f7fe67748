//! How the cost of a request grows with the number of clusters.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::caller::Caller;
use crate::clusters::{self, Clusters, Roots};
use crate::contender::{Contender, Load};
use crate::figure::{Axis, Bound, Figure, Goal, Line, OURS, Sample, Target};
use crate::proxies::{self, Registered};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::watch::closed_loop;
use crate::watch::upstream::Upstream;
use crate::watch::{self, memory};

const CPU: Figure = Figure::new("cpu_us", "CPU µs per request", 1);
const RESIDENT: Figure = Figure::new("rss_mib", "RSS MiB", 1);

const ONE: Target = "1 cluster";
const HUNDRED: Target = "100 clusters";
const TEN_THOUSAND: Target = "10,000 clusters";
const HUNDRED_USED: Target = "100 clusters, all used";
const TEN_THOUSAND_USED: Target = "10,000 clusters, all used";

/// Each target with its clusters, and how many of them are asked.
const POINTS: [(Target, usize, usize); 5] = [
    (ONE, 1, 1),
    (HUNDRED, 100, 1),
    (TEN_THOUSAND, 10_000, 1),
    (HUNDRED_USED, 100, 100),
    (TEN_THOUSAND_USED, 10_000, 10_000),
];
const UPSTREAM: &str = "growth-clusters";
/// Number in the place of ten thousand, to try.
const SMOKE: usize = 200;
/// For one request to each cluster, which makes its connections.
const LAP: Duration = Duration::from_mins(2);
const SETTLE: Duration = Duration::from_secs(2);
/// Reviews of one permission every ten seconds are the same for all proxies, and for 10,000
/// clusters a load of their own.
const FLAGS: [&str; 1] = ["--authorization-webhook-cache-authorized-ttl=10m"];

struct Point {
    route: Route,
    paths: Arc<[String]>,
    _upstream: Rc<Upstream>,
}

const ONE_USED: &[(f64, Target)] = &[(1.0, ONE), (100.0, HUNDRED), (10_000.0, TEN_THOUSAND)];
const ALL_USED: &[(f64, Target)] = &[(1.0, ONE), (100.0, HUNDRED_USED), (10_000.0, TEN_THOUSAND_USED)];
const LINES: &[Line] =
    &[Line { title: "one of them used", points: ONE_USED }, Line { title: "all of them used", points: ALL_USED }];

pub const ABOUT: About = About {
    name: "growth-clusters",
    title: "Cost of a request as clusters grow",
    method: "GETs of 0.9 KiB over 4 HTTP/2 connections with 8 streams each, all clusters the same upstream, ours with \
         one thread. With 1, 100 and 10,000 clusters registered and one of them used; and with all of them used in \
         turn, after a request to each has opened its connection. Each cluster has its own pool, so each write to a \
         connection becomes smaller. Permissions are cached for ten minutes here, at all points: each cluster has its \
         own, and renewing 10,000 every ten seconds would be another load. Those that do not fit into the gateway's \
         cache are reviewed again, and the figure includes that.",
    figures: &[CPU, RESIDENT],
    goals: &[
        Goal::ratio(CPU.key, HUNDRED, ONE).must(Bound::AtMost(1.15)),
        Goal::ratio(CPU.key, TEN_THOUSAND, ONE).must(Bound::AtMost(1.15)),
        Goal::ratio(CPU.key, HUNDRED_USED, ONE).aim(Bound::AtMost(1.15)),
        Goal::ratio(CPU.key, TEN_THOUSAND_USED, ONE).aim(Bound::AtMost(1.15)),
    ],
    axis: Some(Axis { title: "clusters registered", lines: LINES }),
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let most = if testbed.smoke { SMOKE } else { usize::MAX };
    let upstream = Rc::new(Upstream::start(testbed.directory(), UPSTREAM)?);
    let (hub, runtime) = (testbed.hub()?, watch::runtime()?);
    let mut registered = Vec::<Clusters>::new();
    let mut contenders = Vec::new();
    for (target, count, used) in POINTS {
        let (count, used) = (count.min(most), used.min(most));
        let namespace = format!("growth-{count}");
        if !registered.iter().any(|clusters| clusters.count == count) {
            let roots = Roots::Shared;
            registered.push(Clusters::register(&runtime, &hub, &namespace, count, upstream.stand_in(), roots)?);
        }
        let point = Point::start(testbed, &namespace, clusters::paths(used), &upstream);
        contenders.push(Contender::new(target, point));
    }
    Ok(contenders)
}

// === impl Point ===

impl Point {
    fn start(testbed: &mut Testbed, namespace: &str, paths: Arc<[String]>, upstream: &Rc<Upstream>) -> Result<Self> {
        let registered = Registered { namespace: Some(namespace), flags: &FLAGS, token: None };
        let route = proxies::start_registered(testbed, OURS, upstream.called(clusters::FIRST), registered)?;
        Ok(Self { route, paths, _upstream: Rc::clone(upstream) })
    }
}

impl Load for Point {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let caller = Caller::on(&self.route)?.without_prefix();
        let lap = closed_loop::Load { paths: Arc::clone(&self.paths), requests: self.paths.len(), time: LAP };
        watch::runtime()?.block_on(async {
            closed_loop::run(&caller, &lap).await?;
            let before = self.route.tree.usage()?;
            let answered = closed_loop::run(&caller, &closed_loop::Load { requests: usize::MAX, time, ..lap }).await?;
            let cpu = self.route.tree.cpu_since(before)?;
            let resident = memory::settled(&self.route.tree, SETTLE.min(time)).await?;
            Ok(Sample::from([
                (CPU.key, cpu.as_secs_f64() * 1e6 / answered),
                (RESIDENT.key, resident / f64::from(1 << 20)),
            ]))
        })
    }
}
