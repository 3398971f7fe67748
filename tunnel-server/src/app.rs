//! Builds the server: binds and builds everything in order, runs it, then drains it.

mod parts;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use net::process::{self, drained};
use net::runtime::BackgroundRuntime;

use self::parts::Parts;
use crate::args::{self, Config};
use links::Registry;

/// The program's name in requests to the hub.
const PROGRAM: &str = concat!("tunnel-server/", env!("CARGO_PKG_VERSION"));

/// Most threads for name look-ups: tokio's own limit.
const BLOCKING: usize = 512;
/// Wait for threads in a name look-up, which cannot be interrupted: they must not delay the end.
const LOOKUPS: Duration = Duration::from_secs(1);
/// Wait for the tasks to be dropped when the server is dropped.
const AFTER_DROP: Duration = Duration::from_secs(2);

/// A running tunnel-server. Dropping it stops it without draining: streams are reset.
pub struct Server {
    parts: Arc<Parts>,
    runtime: BackgroundRuntime,
}

// === impl Server ===

impl Server {
    /// Starts from command-line arguments, of which the first is the program's name. Returns once
    /// everything is bound and running. Blocks briefly. Works inside and outside an async runtime,
    /// because the server brings its own.
    pub fn start(arguments: impl IntoIterator<Item: Into<OsString> + Clone>) -> anyhow::Result<Self> {
        let config = Config::new(args::parse_from(arguments)?, hub::client::is_in_pod())?;
        let runtime = runtime(config.threads)?;
        Self::assemble(&config, runtime)
    }

    /// Runs until SIGTERM or SIGINT, then drains. For processes that do nothing else: a second
    /// signal ends the process at once.
    pub fn run(config: &Config) -> anyhow::Result<()> {
        let runtime = runtime(config.threads)?;
        process::run(&runtime.handle().clone(), || Self::assemble(config, runtime), Self::stop, || ())
    }

    fn assemble(config: &Config, runtime: BackgroundRuntime) -> anyhow::Result<Self> {
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let parts = Parts::build(config, &runtime)?;
        tracing::info!(
            agents = %parts.agents.address(),
            frontends = ?parts.frontends.address(),
            uds = ?parts.frontends.uds(),
            admin = %parts.admin.address(),
            hub = ?config.hub,
            "serving"
        );
        Ok(Self { parts: Arc::new(parts), runtime })
    }

    /// The agents' listener, with the real port even if the configuration has port 0.
    pub fn agent_address(&self) -> SocketAddr {
        self.parts.agents.address()
    }

    /// The frontends' mTLS listener, if there is one.
    pub fn frontend_address(&self) -> Option<SocketAddr> {
        self.parts.frontends.address()
    }

    /// The frontends' Unix socket, if there is one.
    pub fn frontend_uds(&self) -> Option<&Path> {
        self.parts.frontends.uds()
    }

    pub fn admin_address(&self) -> SocketAddr {
        self.parts.admin.address()
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.parts.shared.registry
    }

    /// Number of running tasks. Tests check that it does not grow with work that has ended.
    pub fn tasks(&self) -> usize {
        self.runtime.handle().metrics().num_alive_tasks()
    }

    /// Blocks until the server is ready.
    pub fn wait_ready(&self, patience: Duration) -> anyhow::Result<()> {
        let readiness = &self.parts.shared.readiness;
        if readiness.wait(patience) {
            return Ok(());
        }
        Err(anyhow!("not ready after {patience:?}: {}", readiness.blocked_by().join(", ")))
    }

    /// Shuts down as SIGTERM does. Returns when everything has ended.
    pub fn stop(self) -> anyhow::Result<()> {
        let Self { parts, runtime } = self;
        let patience = parts.shutdown_delay + parts.drain_timeout;
        let done = runtime.handle().spawn(async move { parts.shut_down().await });
        let _ = drained(runtime.handle(), done, patience)?; // a drain that panicked has ended too
        runtime.end(LOOKUPS + AFTER_DROP).context("the runtime")
    }
}

fn runtime(threads: usize) -> anyhow::Result<BackgroundRuntime> {
    let runtime = BackgroundRuntime::of_relay("tunnel-worker", threads, BLOCKING, LOOKUPS);
    Ok(runtime.context("cannot start a runtime")?.awaited(AFTER_DROP))
}

#[cfg(test)]
mod tests;
