//! Scenarios: one kind of load, the targets that take it, its figures and their goals.

mod bulk;
mod closed_loop;
mod clusters;
mod delivery;
mod exec;
mod front_proxy;
mod get_h1;
mod get_h2;
mod growth_clusters;
mod growth_streams;
mod handshakes;
mod hub;
mod joining;
mod latency;
mod placement;
mod placements;
mod registration;
mod tunnel_bulk;
mod tunnel_dials;
mod tunnel_echo;
mod tunnel_idle;
mod watches_events;
mod watches_idle;

use anyhow::Result;

use crate::contender::Contender;
use crate::figure::{Axis, Figure, Goal};
use crate::testbed::Testbed;

/// One row of the report.
pub struct Scenario {
    pub about: About,
    /// Starts its programs. Called once, before the first round; the result is dropped after the
    /// last.
    pub contenders: Box<Start>,
}

type Start = dyn Fn(&mut Testbed) -> Result<Vec<Contender>>;

/// The report's text about a scenario, and the goals to compare it with.
#[derive(Clone, Copy)]
pub struct About {
    /// Name on the command line: `get-h2`.
    pub name: &'static str,
    /// The heading in the report.
    pub title: &'static str,
    /// The method, for the report: load, connections, what is counted. One paragraph.
    pub method: &'static str,
    pub figures: &'static [Figure],
    pub goals: &'static [Goal],
    /// If its targets are points of lines: how the first figure grows.
    pub axis: Option<Axis>,
}

// === impl Scenario ===

impl Scenario {
    pub fn new(about: About, contenders: impl Fn(&mut Testbed) -> Result<Vec<Contender>> + 'static) -> Self {
        Self { about, contenders: Box::new(contenders) }
    }
}

/// All scenarios, in the order of the report.
pub fn all() -> Vec<Scenario> {
    let mut all = vec![
        Scenario::new(get_h2::ABOUT, |testbed| Ok(get_h2::contenders(testbed))),
        Scenario::new(get_h1::ABOUT, |testbed| Ok(get_h1::contenders(testbed))),
        Scenario::new(front_proxy::ABOUT, |testbed| Ok(front_proxy::contenders(testbed))),
        Scenario::new(latency::ABOUT, |testbed| Ok(latency::contenders(testbed))),
    ];
    all.extend(bulk::all());
    all.extend([
        Scenario::new(growth_streams::ABOUT, |testbed| Ok(growth_streams::contenders(testbed))),
        Scenario::new(watches_idle::ABOUT, watches_idle::contenders),
        Scenario::new(watches_events::ABOUT, watches_events::contenders),
        Scenario::new(clusters::ABOUT, clusters::contenders),
        Scenario::new(growth_clusters::ABOUT, growth_clusters::contenders),
        Scenario::new(exec::ECHO, exec::echo),
        Scenario::new(exec::BULK, exec::bulk),
        Scenario::new(hub::ABOUT, hub::contenders),
        Scenario::new(handshakes::ABOUT, handshakes::contenders),
        Scenario::new(tunnel_bulk::ABOUT, tunnel_bulk::contenders),
        Scenario::new(tunnel_echo::ABOUT, tunnel_echo::contenders),
        Scenario::new(tunnel_dials::ABOUT, tunnel_dials::contenders),
        Scenario::new(tunnel_idle::ABOUT, tunnel_idle::contenders),
        Scenario::new(placement::ABOUT, |testbed| Ok(placement::contenders(testbed))),
        Scenario::new(placements::ABOUT, placements::contenders),
        Scenario::new(delivery::ABOUT, |testbed| Ok(delivery::contenders(testbed))),
        Scenario::new(registration::ABOUT, |testbed| Ok(registration::contenders(testbed))),
        Scenario::new(joining::ABOUT, joining::contenders),
    ]);
    all
}
