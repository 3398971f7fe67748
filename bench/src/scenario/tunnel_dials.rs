//! Connections opened through tunnels.

use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::contender::Contender;
use crate::figure::Bound::AtMost;
use crate::figure::{ANP_HTTP, Figure, Goal, OURS, Sample};
use crate::testbed::Testbed;
use crate::tunnel;

const BURST: (usize, usize) = (4000, 200);
const SMOKE: (usize, usize) = (100, 20);

pub const ABOUT: About = About {
    name: "tunnel-dials",
    title: "Tunnel: opening connections",
    method: "Connections opened and closed one after the other (at most 2,000), timed until the tunnel reports that \
         the destination is reached. The relay and the direct path cannot report that, so there the time ends with an \
         echo. Then 4,000, 200 at a time, timed until 64 bytes have come back, through a driver with one thread, which \
         is part of every time. CPU is that of both processes together, closing included.",
    figures: &[
        Figure::new("p50", "one at a time, p50 µs", 0),
        Figure::new("p99", "p99 µs", 0),
        Figure::new("cpu", "CPU µs each", 0),
        Figure::new("burst_p50", "200 at a time, p50 µs", 0),
        Figure::new("burst_p99", "p99 µs", 0),
        Figure::new("burst_cpu", "CPU µs each", 0),
    ],
    goals: &[
        Goal::ratio("p50", OURS, ANP_HTTP).must(AtMost(1.0 / 3.0)),
        Goal::ratio("p99", OURS, ANP_HTTP).must(AtMost(0.25)),
        Goal::value("p50", OURS).aim(AtMost(250.0)),
        Goal::ratio("burst_p50", OURS, ANP_HTTP).must(AtMost(1.0 / 3.0)),
        Goal::ratio("burst_p99", OURS, ANP_HTTP).must(AtMost(0.25)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let (total, at_once) = if testbed.smoke { SMOKE } else { BURST };
    tunnel::contenders(testbed, ABOUT.name, |plan| {
        let tunnel = plan.start()?;
        Ok(move |time: Duration| {
            let dial = tunnel.dial(time / 2)?;
            let burst = tunnel.burst(total, at_once)?;
            let one = [("p50", dial.p50), ("p99", dial.p99), ("cpu", dial.cpu)];
            let many = [("burst_p50", burst.p50), ("burst_p99", burst.p99), ("burst_cpu", burst.cpu)];
            Ok(one.into_iter().chain(many).collect::<Sample>())
        })
    })
}
