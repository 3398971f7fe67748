//! Watches: an upstream that has them, a client that holds thousands of them.

pub mod closed_loop;
mod lines;
pub mod memory;
pub mod server;
pub mod upstream;
pub mod watchers;

use std::time::Duration;

use anyhow::Result;
use tokio::runtime::{Builder, Runtime};

use self::watchers::Plan;

/// As many as the rows of the report are about: 100 on each connection, as a client of Go's opens
/// them.
pub const FULL: Plan = Plan { connections: 100, streams: 100 };
/// A few, to warm up, and to try.
const FEW: Plan = Plan { connections: 10, streams: 20 };
/// A measurement that is asked for less time than this is not one that counts.
const WARM_UP: Duration = Duration::from_secs(2);

/// The plan of a measurement that is to take `time`.
pub fn plan(time: Duration) -> Plan {
    if time < WARM_UP { FEW } else { FULL }
}

/// The runtime of one measurement by a driver of one thread; dropping it closes all connections,
/// which nothing drives any longer.
pub fn runtime() -> Result<Runtime> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}
