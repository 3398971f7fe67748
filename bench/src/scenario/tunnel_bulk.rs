//! Bytes through tunnels.

use std::time::Duration;

use anyhow::Result;

use super::About;
use crate::contender::{Contender, Load};
use crate::figure::Bound::{AtLeast, AtMost};
use crate::figure::{ANP_HTTP, Figure, Goal, OURS, RELAY, Sample};
use crate::testbed::Testbed;
use crate::tunnel::{self, Direction, Tunnel};

struct Run {
    tunnel: Tunnel,
    smoke: bool,
}

const MANY: usize = 8;
/// Bytes moved until the far end says so; then the next.
const UNIT: u64 = 16 << 20;
/// Unit of each of many streams: at the end of the time all are to be busy.
const UNIT_OF_MANY: u64 = 4 << 20;

const fn cpu(figure: &'static str) -> Goal {
    Goal::ratio(figure, OURS, ANP_HTTP).must(AtMost(1.0 / 3.0)).aim(AtMost(0.25))
}

const fn floor(figure: &'static str) -> Goal {
    Goal::ratio(figure, OURS, RELAY).aim(AtMost(1.5))
}

const fn rate(figure: &'static str) -> Goal {
    Goal::ratio(figure, OURS, ANP_HTTP).must(AtLeast(3.0))
}

pub const ABOUT: About = About {
    name: "tunnel-bulk",
    title: "Tunnel: bytes, one stream and eight",
    method: "Our own driver enters each tunnel and moves 16 MiB at a time over one connection (4 MiB over each of \
         eight), counted when all of it has reached the far end. Tunnels are two processes with mutual TLS between \
         them. The driver enters ours, konnectivity and the relay (two HAProxies in TCP mode, without any tunnel \
         protocol) through a Unix socket, and the h2 frontend over mutual TLS, whose cost is in its figures. CPU is \
         that of both processes together; of the destination on the direct path. A MB is a million bytes. Driver \
         and destination share the machine, which limits the rates.",
    figures: &[
        Figure::new("down_cpu", "download, CPU ms per MB", 2),
        Figure::new("down_rate", "download, MB/s", 0),
        Figure::new("up_cpu", "upload, CPU ms per MB", 2),
        Figure::new("up_rate", "upload, MB/s", 0),
        Figure::new("down8_cpu", "8 downloads, CPU ms per MB", 2),
        Figure::new("down8_rate", "8 downloads, MB/s in total", 0),
        Figure::new("up8_cpu", "8 uploads, CPU ms per MB", 2),
        Figure::new("up8_rate", "8 uploads, MB/s in total", 0),
    ],
    goals: &[
        cpu("down_cpu"),
        floor("down_cpu"),
        rate("down_rate"),
        cpu("up_cpu"),
        floor("up_cpu"),
        rate("up_rate"),
        cpu("down8_cpu"),
        floor("down8_cpu"),
        rate("down8_rate"),
        cpu("up8_cpu"),
        floor("up8_cpu"),
        rate("up8_rate"),
    ],
    axis: None,
};

pub fn contenders(testbed: &mut Testbed) -> Result<Vec<Contender>> {
    let smoke = testbed.smoke;
    tunnel::contenders(testbed, ABOUT.name, |plan| Ok(Run { tunnel: plan.start()?, smoke }))
}

impl Load for Run {
    fn measure(&mut self, time: Duration) -> Result<Sample> {
        let mut sample = Sample::new();
        let mut bulk = |direction, streams, unit, cpu, rate| -> Result<()> {
            let unit = if self.smoke { 1 << 20 } else { unit };
            let bulk = self.tunnel.bulk(direction, streams, unit, time / 4)?;
            sample.insert(cpu, bulk.cpu_ms_per_mb);
            sample.insert(rate, bulk.mb_per_second);
            Ok(())
        };
        bulk(Direction::Down, 1, UNIT, "down_cpu", "down_rate")?;
        bulk(Direction::Up, 1, UNIT, "up_cpu", "up_rate")?;
        bulk(Direction::Down, MANY, UNIT_OF_MANY, "down8_cpu", "down8_rate")?;
        bulk(Direction::Up, MANY, UNIT_OF_MANY, "up8_cpu", "up8_rate")?;
        Ok(sample)
    }
}
