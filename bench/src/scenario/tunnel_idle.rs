//! Idle connections through tunnels.

use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::contender::Contender;
use crate::figure::Bound::AtMost;
use crate::figure::{ANP_HTTP, DIRECT, Figure, Goal, OURS, OURS_H2, Sample};
use crate::testbed::Testbed;
use crate::tunnel;

const CONNECTIONS: usize = 10_000;
const SMOKE: usize = 100;

pub const ABOUT: About = About {
    name: "tunnel-idle",
    title: "Tunnel: idle connections",
    method: "A tunnel is started and 10,000 connections are opened through it (fewer where file descriptors run out: \
         the relay needs two for each). 64 bytes go there and back on each; two seconds later the resident memory of \
         both processes together is compared with that before the first connection. Then all are closed, and memory is \
         read again after twice the length of a measurement (10 s by default).",
    figures: &[
        Figure::new("open", "KiB RSS each", 1),
        Figure::new("closed", "KiB each, after closing", 1),
        Figure::new("count", "connections", 0),
    ],
    goals: &[
        Goal::value("open", OURS).must(AtMost(8.0)).aim(AtMost(4.0)),
        Goal::value("open", OURS_H2).must(AtMost(8.0)).aim(AtMost(4.0)),
        Goal::ratio("open", OURS, ANP_HTTP),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let wanted = if testbed.smoke { SMOKE } else { CONNECTIONS };
    let all = tunnel::contenders(testbed, ABOUT.name, |plan| {
        Ok(move |time: Duration| {
            let connections = plan.most(wanted);
            let idle = plan.start()?.idle(connections, time * 2)?;
            #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
            let count = connections as f64;
            Ok(Sample::from([("open", idle.open), ("closed", idle.closed), ("count", count)]))
        })
    })?;
    Ok(all.into_iter().filter(|contender| contender.target != DIRECT).collect()) // nothing in between
}
