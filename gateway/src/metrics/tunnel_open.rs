//! How the last attempt went to open a byte stream through the tunnel, hop by hop, as spans have
//! it: kept for `clustergateways/traffic`, whether requests are traced or not.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use api::traffic;
use parking_lot::Mutex;
use tunnel::Timing;

use super::{micros, recent};

/// Servers kept of one attempt: a reader of more has other questions.
const MOST: usize = 8;

/// Of one cluster. Each attempt takes the place of the one before.
#[derive(Debug, Default)]
pub struct LastTunnelOpen(Mutex<Option<TunnelOpen>>);

/// One attempt, ended or not.
#[derive(Debug, Default)]
pub struct TunnelOpen {
    hops: Vec<TunnelHop>,
    ended: Option<(SystemTime, Duration)>,
}

/// The hop that was asked for the stream, and its outcome.
#[derive(Debug)]
pub struct TunnelHop {
    /// A tunnel-server; absent: this process.
    pub server: Option<SocketAddr>,
    /// One of a fixed set.
    pub outcome: &'static str,
    /// Until the answer.
    pub took: Duration,
    /// To the server, as last measured.
    pub round_trip: Option<Duration>,
    /// What the hops behind it said.
    pub timing: Timing,
}

// === impl LastTunnelOpen ===

impl LastTunnelOpen {
    /// `attempt` has ended now, after `took`.
    pub fn set(&self, attempt: TunnelOpen, took: Duration) {
        *self.0.lock() = Some(TunnelOpen { ended: Some((SystemTime::now(), took)), ..attempt });
    }

    pub fn read(&self) -> Option<traffic::TunnelOpen> {
        let last = self.0.lock();
        let TunnelOpen { hops, ended } = last.as_ref()?;
        let (time, took) = (*ended)?;
        let hops = hops.iter().map(TunnelHop::to_api).collect();
        Some(traffic::TunnelOpen { time: recent::millis(time), took_micros: micros(took), hops })
    }
}

// === impl TunnelOpen ===

impl TunnelOpen {
    /// A hop was asked, and has answered or will not.
    pub fn asked(&mut self, hop: TunnelHop) {
        if self.hops.len() < MOST {
            self.hops.push(hop);
        }
    }
}

// === impl TunnelHop ===

impl TunnelHop {
    fn to_api(&self) -> traffic::TunnelHop {
        traffic::TunnelHop {
            server: self.server.map(|server| server.to_string()).unwrap_or_default(),
            outcome: self.outcome.to_owned(),
            took_micros: micros(self.took),
            round_trip_micros: self.round_trip.map(micros),
            // Others say it: no share is larger than the whole.
            agent_micros: self.timing.agent().map(|took| micros(took.min(self.took))),
            dial_micros: self.timing.dial().map(|took| micros(took.min(self.took))),
        }
    }
}
