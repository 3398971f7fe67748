//! The tunnels of a run, and how to start one of them, as often as wanted.

use std::path::PathBuf;
use std::rc::Rc;

use anyhow::{Context as _, Result};

use super::Tunnel;
use super::destination::Destination;
use super::files::Files;
use super::programs::{Door, HAPROXY_DESCRIPTORS, Programs, descriptors};
use crate::contender::{Contender, Load};
use crate::figure::{ANP_GRPC, ANP_HTTP, BASELINE, DIRECT, OURS, OURS_H2, RELAY, Target};
use crate::given;
use crate::testbed::Testbed;
use crate::tool::{self, Absent};
use harness::program::Program;

/// Targets in the order of the report.
const TARGETS: [Target; 7] = [DIRECT, OURS, OURS_H2, BASELINE, ANP_HTTP, ANP_GRPC, RELAY];

/// A tunnel that is not started.
#[derive(Clone)]
pub struct Plan {
    pub target: Target,
    programs: Programs,
    files: Rc<Files>,
    destination: Rc<Destination>,
    directory: PathBuf,
}

/// A contender for each tunnel, with the load that `load` makes of it. `scenario` is for the names
/// of directories.
pub fn contenders<L: Load + 'static>(
    testbed: &Testbed,
    scenario: &str,
    mut load: impl FnMut(Plan) -> Result<L>,
) -> Result<Vec<Contender>> {
    let directory = testbed.file(scenario);
    std::fs::create_dir_all(&directory)?;
    let (files, destination) = (Rc::new(Files::write(&directory)?), Rc::new(Destination::start(&directory)?));
    let mut contender = |(index, target): (usize, Target)| {
        let plan = programs(testbed, target).and_then(|programs| {
            let directory = directory.join(index.to_string()); // short: a socket's path is limited
            std::fs::create_dir_all(&directory)?;
            let (files, destination) = (Rc::clone(&files), Rc::clone(&destination));
            load(Plan { target, programs, files, destination, directory })
        });
        Contender::new(target, plan)
    };
    let wanted = TARGETS.into_iter().enumerate();
    Ok(wanted.filter(|(_, target)| *target != BASELINE || baseline(testbed).is_some()).map(&mut contender).collect())
}

fn baseline(testbed: &Testbed) -> Option<(PathBuf, PathBuf)> {
    let directory = testbed.given.baseline_tunnel.as_deref()?;
    Some((directory.join("tunnel-server"), directory.join("tunnel-agent")))
}

fn programs(testbed: &Testbed, target: Target) -> Result<Programs> {
    let ours = |door| -> Result<Programs> {
        let (server, agent) = (testbed.program(Program::TunnelServer)?, testbed.program(Program::TunnelAgent)?);
        Ok(Programs::Ours { server, agent, door })
    };
    let konnectivity = |grpc| -> Result<Programs> {
        let server = given::program(testbed.given.anp_server.as_ref(), "konnectivity's proxy-server", "--anp-server")?;
        let agent = given::program(testbed.given.anp_agent.as_ref(), "konnectivity's proxy-agent", "--anp-agent")?;
        Ok(Programs::Konnectivity { server, agent, grpc })
    };
    match target {
        OURS => ours(Door::Uds),
        OURS_H2 => ours(Door::H2),
        BASELINE => {
            let (server, agent) = baseline(testbed).ok_or_else(|| Absent::new(target, "--baseline-tunnel"))?;
            Ok(Programs::Ours { server, agent, door: Door::Uds })
        }
        ANP_HTTP => konnectivity(false),
        ANP_GRPC => konnectivity(true),
        RELAY => Ok(Programs::Haproxy(tool::find("haproxy", "haproxy")?)),
        _ => Ok(Programs::Nothing),
    }
}

// === impl Plan ===

impl Plan {
    /// Starts its programs and waits until something comes back through them.
    pub fn start(&self) -> Result<Tunnel> {
        let (entry, processes) = self.programs.start(&self.files, self.destination.address, &self.directory)?;
        Tunnel::new(entry, processes, Rc::clone(&self.destination))
            .with_context(|| format!("{} does not work", self.target))
    }

    /// As many of `wanted` connections as every process has descriptors for.
    pub fn most(&self, wanted: usize) -> usize {
        let each = if let Programs::Haproxy(_) = &self.programs { HAPROXY_DESCRIPTORS } else { 1 };
        wanted.min(descriptors() / each)
    }
}
