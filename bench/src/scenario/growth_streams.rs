//! How the cost of a request grows with the other requests and watches on the route.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;

use super::About;
use super::closed_loop::{self, FIGURES};
use crate::caller::held::HeldRequests;
use crate::caller::repeater::Repeater;
use crate::contender::{Contender, Load};
use crate::figure::{Axis, Bound, Goal, Line, OURS, Sample, Target};
use crate::h2load::{Amount, H2load, Shape};
use crate::proxies;
use crate::route::Route;
use crate::testbed::Testbed;
use crate::upstream::{SMALL, WATCH};

const BUSY_1: Target = "1 at once";
const BUSY_8: Target = "8 at once";
const BUSY_32: Target = "32 at once";
const BUSY_100: Target = "100 at once";
const BUSY_1000: Target = "1,000 at once";
const IDLE_100: Target = "32 at once beside 100 watches";
const IDLE_1000: Target = "32 at once beside 1,000 watches";

/// Requests at once and idle watches beside them.
const POINTS: [(Target, usize, usize); 7] = [
    (BUSY_1, 1, 0),
    (BUSY_8, 8, 0),
    (BUSY_32, 32, 0),
    (BUSY_100, 100, 0),
    (BUSY_1000, 1000, 0),
    (IDLE_100, 32, 100),
    (IDLE_1000, 32, 1000),
];
/// In `bench smoke`: most requests at once, and most watches beside them.
const SMOKE: usize = 200;
const CONNECTIONS: usize = 4;
/// Usual number of a client's watches on one connection.
const WATCHES_PER_CONNECTION: usize = 100;
const LINES: [Line; 2] = [
    Line {
        title: "busy streams",
        points: &[(1.0, BUSY_1), (8.0, BUSY_8), (32.0, BUSY_32), (100.0, BUSY_100), (1000.0, BUSY_1000)],
    },
    Line { title: "32 busy, the others idle", points: &[(32.0, BUSY_32), (132.0, IDLE_100), (1032.0, IDLE_1000)] },
];

struct Beside {
    tool: H2load,
    route: Rc<Route>,
    shape: Shape,
    watches: usize,
}

pub const ABOUT: About = About {
    name: "growth-streams",
    title: "How cost grows with concurrent streams",
    method: "1 KiB GETs through ours over HTTP/2, from h2load on 4 connections (1 for a single request at a time). \
         Busy: the given number of requests is in flight at every moment. With few requests, each costs more, because \
         every wake-up, read and write then serves one request instead of a batch: this is the cost of an idle CPU, \
         not of the number of streams. Idle: 32 requests at once, next to idle watches through the same gateway, 100 \
         on a connection: this shows what open streams cost the other requests.",
    figures: &FIGURES,
    goals: &[
        Goal::ratio("cpu_us", BUSY_1000, BUSY_1).must(Bound::AtMost(1.15)),
        Goal::ratio("cpu_us", BUSY_1000, BUSY_32).must(Bound::AtMost(1.15)),
        Goal::ratio("cpu_us", IDLE_1000, BUSY_32).must(Bound::AtMost(1.15)),
    ],
    axis: Some(Axis { title: "streams open at once", lines: &LINES }),
};

pub fn contenders(testbed: &mut Testbed) -> Vec<Contender> {
    POINTS.iter().map(|&(name, busy, idle)| Contender::new(name, Beside::new(testbed, busy, idle))).collect()
}

// === impl Beside ===

impl Beside {
    fn new(testbed: &mut Testbed, busy: usize, watches: usize) -> Result<Self> {
        let most = if testbed.smoke { SMOKE } else { usize::MAX };
        let (busy, watches) = (busy.min(most), watches.min(most));
        let connections = busy.min(CONNECTIONS);
        let shape = Shape::get(SMALL, connections, busy / connections);
        Ok(Self { tool: H2load::find()?, route: proxies::route(testbed, OURS)?, shape, watches })
    }
}

impl Load for Beside {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let watch = Repeater::new(&self.route, WATCH, None, None)?;
        let _watches = HeldRequests::open(watch, self.watches, WATCHES_PER_CONNECTION)?;
        self.shape.amount = Amount::For(time);
        let before = self.route.tree.usage()?;
        let summary = self.tool.run(&self.route, &self.shape)?;
        closed_loop::sample(&self.route, before, summary.requests, summary.elapsed, Some(summary.mean))
    }
}
