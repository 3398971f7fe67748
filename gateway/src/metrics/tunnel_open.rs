//! The last attempt to open a byte stream through the tunnel, hop by hop, as spans record it:
//! stored for `clustergateways/traffic`, even if requests are not traced.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use api::traffic;
use parking_lot::Mutex;
use tunnel::Timing;

use super::{micros, recent};

/// Most servers recorded for one attempt, which is enough for a reader.
const MOST: usize = 8;

/// The last attempt for one cluster. Each attempt replaces the one before.
#[derive(Debug, Default)]
pub struct LastTunnelOpen(Mutex<Option<TunnelOpen>>);

/// One attempt, ended or not.
#[derive(Debug, Default)]
pub struct TunnelOpen {
    hops: Vec<TunnelHop>,
    ended: Option<(SystemTime, Duration)>,
}

/// A hop that was asked for the stream, with its outcome.
#[derive(Debug)]
pub struct TunnelHop {
    /// A tunnel-server, or none for this process.
    pub server: Option<SocketAddr>,
    /// A word of a fixed set.
    pub outcome: &'static str,
    /// Time until the answer.
    pub took: Duration,
    /// Last measured round-trip time to the server.
    pub round_trip: Option<Duration>,
    /// The timing that the hops behind it reported.
    pub timing: Timing,
}

// === impl LastTunnelOpen ===

impl LastTunnelOpen {
    /// Records `attempt`, which has ended now, after `took`.
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
    /// Records a hop that was asked, and has answered or will not.
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
            // Reported by other programs, so no part may be larger than the whole.
            agent_micros: self.timing.agent().map(|took| micros(took.min(self.took))),
            dial_micros: self.timing.dial().map(|took| micros(took.min(self.took))),
        }
    }
}
