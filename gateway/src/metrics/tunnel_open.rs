//! How the last attempt went to open a byte stream through the tunnel, hop by hop, as spans have
//! it: kept for whoever asks, whether requests are traced or not.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use api::traffic;
use parking_lot::Mutex;

use super::{micros, recent};

/// Servers kept of one attempt. Who asks more of them has other questions.
const MOST: usize = 8;

/// Of one cluster. Each attempt takes the place of the one before.
#[derive(Debug, Default)]
pub struct LastTunnelOpen(Mutex<Option<TunnelOpen>>);

/// One attempt, ended or not.
#[derive(Debug, Default)]
pub struct TunnelOpen {
    hops: Vec<Hop>,
    ended: Option<(SystemTime, Duration)>,
}

/// Who was asked for the stream, and what came of it.
#[derive(Debug)]
struct Hop {
    /// A tunnel-server; absent: this process.
    server: Option<SocketAddr>,
    /// One of a fixed set.
    outcome: &'static str,
    took: Duration,
    round_trip: Option<Duration>,
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
        let hops = hops.iter().map(Hop::told).collect();
        Some(traffic::TunnelOpen { time: recent::millis(time), took_micros: micros(took), hops })
    }
}

// === impl TunnelOpen ===

impl TunnelOpen {
    /// `server`, or this process, was asked, and answered so after `took`. `round_trip`: to it, as
    /// last measured.
    pub fn asked(
        &mut self,
        server: Option<SocketAddr>,
        outcome: &'static str,
        took: Duration,
        round_trip: Option<Duration>,
    ) {
        if self.hops.len() < MOST {
            self.hops.push(Hop { server, outcome, took, round_trip });
        }
    }
}

// === impl Hop ===

impl Hop {
    fn told(&self) -> traffic::TunnelHop {
        traffic::TunnelHop {
            server: self.server.map(|server| server.to_string()).unwrap_or_default(),
            outcome: self.outcome.to_owned(),
            took_micros: micros(self.took),
            round_trip_micros: self.round_trip.map(micros),
        }
    }
}
