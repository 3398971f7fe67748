//! Words there and back through tunnels.

use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::contender::Contender;
use crate::figure::Bound::AtMost;
use crate::figure::{ANP_HTTP, DIRECT, Figure, Goal, OURS, Sample};
use crate::testbed::Testbed;
use crate::tunnel;

pub const ABOUT: About = About {
    name: "tunnel-echo",
    title: "Tunnel: 64 bytes there and back",
    method: "One connection through each tunnel sends 64 bytes there and back, and the next 64 when these have \
         returned. The goals are about the time that a tunnel adds to the direct path. CPU is that of both processes \
         together; of the destination on the direct path.",
    figures: &[Figure::new("p50", "p50 µs", 0), Figure::new("p99", "p99 µs", 0), Figure::new("cpu", "CPU µs each", 0)],
    goals: &[
        Goal::ratio("p50", OURS, ANP_HTTP).over(DIRECT).must(AtMost(0.5)),
        Goal::ratio("p99", OURS, ANP_HTTP).over(DIRECT).must(AtMost(0.5)),
        Goal::value("p50", OURS).over(DIRECT).aim(AtMost(100.0)),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    tunnel::contenders(testbed, ABOUT.name, |plan| {
        let tunnel = plan.start()?;
        Ok(move |time: Duration| {
            let echo = tunnel.echo(time)?;
            Ok(Sample::from([("p50", echo.p50), ("p99", echo.p99), ("cpu", echo.cpu)]))
        })
    })
}
