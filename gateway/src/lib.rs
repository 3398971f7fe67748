//! The aggregated API server `cluster-gateway`: proxies Kubernetes requests to member clusters.
//!
//! A library with a thin `main.rs`, so that tests, the demo and benches start it in their own
//! process.

mod app;
pub mod args;
mod audit;
#[doc(hidden)]
pub mod bench;
mod beside;
mod body;
mod clusters;
mod config;
mod connection;
#[doc(hidden)]
pub mod edges;
mod error;
mod every;
mod exchange;
mod failures;
mod handler;
mod headers;
mod holding;
mod hub;
mod inbound;
mod limits;
mod metrics;
mod needs;
pub mod patch;
mod probes;
mod proxy;
mod record;
mod request;
mod request_body;
mod resources;
mod server;
mod serving;
mod spans;
mod tunnel;
mod unread;
mod upstream;

use std::ffi::OsString;

pub use self::app::Gateway;
use self::config::Config;

// === impl Gateway ===

impl Gateway {
    /// Starts from command-line arguments, the program's name first, as [`Gateway::start_with`]
    /// does.
    pub fn start(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> anyhow::Result<Self> {
        Self::start_with(&Config::try_from(args::parse_from(arguments)?)?)
    }
}
