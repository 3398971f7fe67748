//! What is measured: one kind of load, the targets that take it, the figures it gives and the goals
//! they are held against.

mod bulk;
mod closed_loop;
mod clusters;
mod exec;
mod front_proxy;
mod get_h1;
mod get_h2;
mod growth_clusters;
mod growth_streams;
mod handshakes;
mod hub;
mod latency;
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
pub trait Scenario {
    /// For the command line: `get-h2`.
    fn name(&self) -> &'static str;

    /// The heading in the report.
    fn title(&self) -> &'static str;

    /// How it is measured, for the report: load, connections, what is counted. One paragraph.
    fn method(&self) -> &'static str;

    fn figures(&self) -> &'static [Figure];

    fn goals(&self) -> &'static [Goal];

    /// If its targets are points of lines: how the first figure grows.
    fn axis(&self) -> Option<Axis> {
        None
    }

    /// Starts what it needs. Called once, before the first round; what it returns is dropped after
    /// the last.
    fn contenders(&self, testbed: &mut Testbed) -> Result<Vec<Contender>>;
}

/// All, in the order of the report.
pub fn all() -> Vec<Box<dyn Scenario>> {
    vec![
        Box::new(get_h2::GetH2),
        Box::new(get_h1::GetH1),
        Box::new(front_proxy::FrontProxy),
        Box::new(latency::Latency),
        Box::new(bulk::Bulk::DOWNLOAD),
        Box::new(bulk::Bulk::DOWNLOADS),
        Box::new(bulk::Bulk::UPLOAD),
        Box::new(bulk::Bulk::UPLOADS),
        Box::new(growth_streams::GrowthStreams),
        Box::new(watches_idle::WatchesIdle),
        Box::new(watches_events::WatchesEvents),
        Box::new(clusters::ManyClusters),
        Box::new(growth_clusters::GrowthClusters),
        Box::new(exec::ExecEcho),
        Box::new(exec::ExecBulk),
        Box::new(hub::ThroughHub),
        Box::new(handshakes::Handshakes),
        Box::new(tunnel_bulk::TunnelBulk),
        Box::new(tunnel_echo::TunnelEcho),
        Box::new(tunnel_dials::TunnelDials),
        Box::new(tunnel_idle::TunnelIdle),
    ]
}
