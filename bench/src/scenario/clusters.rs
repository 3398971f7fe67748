//! Ten thousand clusters: starting with them, keeping up with their Secrets, finding one among
//! them.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::{MissedTickBehavior, interval};

use super::About;
use crate::caller::Caller;
use crate::clusters::{self, Clusters, Roots};
use crate::contender::{Contender, Load};
use crate::figure::{BASELINE, Bound, Figure, GO, Goal, OURS, Sample, Target};
use crate::latency;
use crate::proxies::{self, Registered};
use crate::route::Route;
use crate::testbed::Testbed;
use crate::watch::upstream::Upstream;
use crate::watch::{self, closed_loop, memory};
use harness::usage::Tree;

const RESIDENT: Figure = Figure::new("rss_mb", "RSS MB", 1);
const READY: Figure = Figure::new("ready_s", "s from start to the first answer", 2);
const START: Figure = Figure::new("start_cpu_s", "CPU s until then", 2);
const REQUEST: Figure = Figure::new("cpu_us", "CPU µs per request", 1);
const ROTATION: Figure = Figure::new("rotation_cpu_ms", "CPU ms per second with a rotation in it", 2);
const FOLLOW: Figure = Figure::new("follow_ms", "ms from a new token to an answer with it, p50", 1);

const OURS_ONE: Target = "ours, 1 cluster";
const GO_ONE: Target = "go gateway, 1 cluster";
/// Each target with its program, and whether it has many clusters.
const TARGETS: [(Target, Target, bool); 5] =
    [(OURS, OURS, true), (OURS_ONE, OURS, false), (BASELINE, BASELINE, true), (GO, GO, true), (GO_ONE, GO, false)];

const MANY: usize = 10_000;
/// Number of clusters in its place, to try.
const SMOKE: usize = 200;
const UPSTREAM: &str = "clusters";
/// Time for a program to finish starting.
const SETTLE: Duration = Duration::from_secs(5);
/// Rotations that are followed until the new token is used.
const FOLLOWED: usize = 5;
const PERIOD: Duration = Duration::from_secs(1);

struct ClustersLoad {
    route: Route,
    clusters: Rc<Clusters>,
    /// Makes each rotation bring another token.
    rotations: usize,
    _upstream: Rc<Upstream>,
}

pub const ABOUT: About = About {
    name: "clusters",
    title: "10,000 clusters registered, one rotated each second",
    method: "10,000 Secrets on a real hub, each with its own CA and a token of 900 bytes. Each round restarts the \
         program. It is ready when it answers a request to one of the clusters; its memory is read once it no \
         longer changes. Then a client sends GETs of 0.9 KiB to that cluster, over 4 HTTP/2 connections with 8 streams \
         each. Then one Secret per second gets a new token, and all that the program spends meanwhile is divided by \
         the seconds. Finally, the token of the requested cluster is rotated five times, timed from the hub's answer \
         until a repeated request succeeds with the new token. The same with one Secret shows what 10,000 cost.",
    figures: &[RESIDENT, READY, START, REQUEST, ROTATION, FOLLOW],
    goals: &[
        Goal::value(RESIDENT.key, OURS).must(Bound::AtMost(150.0)),
        Goal::value(READY.key, OURS).must(Bound::AtMost(3.0)),
        Goal::ratio(REQUEST.key, OURS, OURS_ONE).must(Bound::AtMost(1.15)),
        Goal::ratio(RESIDENT.key, OURS, GO).aim(Bound::AtMost(1.0)),
        Goal::ratio(ROTATION.key, OURS, GO).aim(Bound::AtMost(1.0)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let count = if testbed.smoke { SMOKE } else { MANY };
    let upstream = Rc::new(Upstream::start(testbed.directory(), UPSTREAM)?);
    let (hub, runtime) = (testbed.hub()?, watch::runtime()?);
    let register = |namespace, count| {
        Clusters::register(&runtime, &hub, namespace, count, upstream.stand_in(), Roots::Own).map(Rc::new)
    };
    let (many, one) = (register("clusters-many", count)?, register("clusters-one", 1)?);
    let mut load = |program, clusters: &Rc<Clusters>| {
        let registered = Registered { namespace: Some(&clusters.namespace), ..Registered::default() };
        let route = proxies::start_registered(testbed, program, upstream.called(clusters::FIRST), registered)?;
        let (clusters, upstream) = (Rc::clone(clusters), Rc::clone(&upstream));
        Ok(ClustersLoad { route, clusters, rotations: 0, _upstream: upstream })
    };
    let mut contender =
        |(target, program, is_many)| Contender::new(target, load(program, if is_many { &many } else { &one }));
    Ok(TARGETS.map(&mut contender).into())
}

// === impl ClustersLoad ===

impl Load for ClustersLoad {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let ready = self.route.restart()?;
        let start = self.route.tree.usage()?.cpu;
        let caller = Caller::on(&self.route)?.without_prefix();
        let Self { route, clusters, rotations, .. } = self;
        watch::runtime()?.block_on(async {
            let resident = memory::settled(&route.tree, SETTLE.min(time)).await?;
            let request = request(&caller, &route.tree, time).await?;
            let rotation = rotate(clusters, &route.tree, rotations, time).await?;
            let follow = follow(clusters, &caller, rotations).await?;
            Ok(Sample::from([
                (RESIDENT.key, resident / 1e6),
                (READY.key, ready.as_secs_f64()),
                (START.key, start.as_secs_f64()),
                (REQUEST.key, request),
                (ROTATION.key, rotation),
                (FOLLOW.key, follow),
            ]))
        })
    }
}

/// Processor microseconds of a request to the first cluster.
async fn request(caller: &Caller, tree: &Tree, time: Duration) -> Result<f64> {
    let load = closed_loop::Load { paths: clusters::paths(1), requests: usize::MAX, time };
    let before = tree.usage()?;
    let answered = closed_loop::run(caller, &load).await?;
    Ok(tree.cpu_since(before)?.as_secs_f64() * 1e6 / answered)
}

/// Processor milliseconds of a second in which one cluster gets another token, with all that is
/// done in it anyway.
async fn rotate(clusters: &Clusters, tree: &Tree, number: &mut usize, time: Duration) -> Result<f64> {
    let (mut ticks, mut rotated) = (interval(PERIOD), 0);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let before = tree.usage()?;
    for _ in 0..time.as_secs().max(1) {
        ticks.tick().await;
        *number += 1;
        clusters.rotate(*number % clusters.count, &clusters::token(*number)).await?;
        rotated += 1;
    }
    ticks.tick().await; // for the last one to arrive
    Ok(tree.cpu_since(before)?.as_secs_f64() * 1e3 / f64::from(rotated))
}

/// Milliseconds, the median.
async fn follow(clusters: &Clusters, caller: &Caller, number: &mut usize) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..FOLLOWED {
        *number += 1;
        times.push(clusters.follow(caller, &clusters::token(*number)).await?);
    }
    let (median, _) = latency::percentiles(times)?;
    Ok(median / 1e3)
}
