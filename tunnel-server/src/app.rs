//! Builds the server: binds and builds everything in order, runs it, then drains it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use net::drain::Drain;
use net::process::{self, drained};
use net::runtime::{BackgroundRuntime, block_on};
use net::throttle::LogThrottle;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use telemetry::readiness::Readiness;
use tunnel::Budget;

use crate::admin::{self, Admin};
use crate::args::{self, Config, Hub};
use crate::frontend::Frontends;
use crate::metrics::Metrics;
use crate::shared::{Common, Shared};
use links::Agents;
use links::Limits;
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

/// The listeners, and the state they share.
struct Parts {
    admin: Admin,
    frontends: Frontends,
    agents: Agents,
    shared: Shared,
    shutdown_delay: Duration,
    drain_timeout: Duration,
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

// === impl Parts ===

impl Parts {
    fn build(config: &Config, runtime: &BackgroundRuntime) -> anyhow::Result<Self> {
        let handle = runtime.handle();
        let readiness = Readiness::default();
        let starting = [readiness.block("agents"), readiness.block("frontends")];
        let mut registry = MetricsRegistry::default();
        let metrics = Metrics::register(&mut registry);
        let certificates = Certificates::register("tunnel_server", &mut registry);
        let budget = Budget::new(config.max_held_bytes);
        Metrics::watch(&mut registry, &budget);
        let hub = hub(&config.hub, runtime)?;
        let agents = Agents::start(&config.agents, hub, handle, &mut registry)?;
        if let Hub::Kubeconfig(path) = &config.hub
            && let Some(certificate) = hub::ClientCertificate::of(path)
        {
            certificates.watch(Arc::new(certificate));
        }
        certificates.watch(Arc::clone(agents.certificate()) as _);
        let shared = Arc::new(Common {
            registry: Arc::clone(agents.registry()),
            readiness,
            drain: Drain::new(),
            metrics,
            certificates,
            exposition: Arc::new(telemetry::metrics::Metrics::new(registry)),
            budget,
            limits: Limits::default(),
            settings: config.agents.settings.clone(),
            dial_timeout: config.dial_timeout,
            default_cluster: config.default_cluster.clone(),
            refusals: LogThrottle::default(),
        });
        let frontends = Frontends::start(&config.frontends, shared.clone(), handle)?;
        let admin = admin::start(config.admin_listen, shared.clone(), handle)?;
        drop(starting);
        let (shutdown_delay, drain_timeout) = (config.shutdown_delay, config.drain_timeout);
        Ok(Self { admin, frontends, agents, shared, shutdown_delay, drain_timeout })
    }

    /// Fails readiness first, so that load balancers send no new clients here. Then asks agents and
    /// frontends to move to other servers, and lets open streams finish.
    async fn shut_down(&self) {
        let not_ready = self.shared.readiness.block("shutdown");
        tokio::time::sleep(self.shutdown_delay).await;
        let drain = &self.shared.drain;
        // In this order: when a frontend refuses a client, the agent is already on its way to
        // another server.
        let (agents, frontends) = (self.agents.drain(drain), async {
            self.frontends.drain();
            drain.finish(self.drain_timeout).await
        });
        let (all_ended, in_time) = tokio::join!(agents, frontends);
        if all_ended && in_time {
            tracing::info!("drained");
        } else {
            tracing::warn!(after = ?self.drain_timeout, "reset unfinished streams");
        }
        drop(not_ready);
    }
}

/// The client of the hub, if there is one. It belongs to the runtime that drives it.
fn hub(hub: &Hub, runtime: &BackgroundRuntime) -> anyhow::Result<Option<auth::Hub>> {
    let path = match hub {
        Hub::Kubeconfig(path) => Some(path.clone()),
        Hub::InCluster => None,
        Hub::None => return Ok(None),
    };
    let client = block_on(runtime.handle(), async move { hub::client::client(path.as_deref(), PROGRAM).await })?;
    Ok(Some(client.context("the hub, for reviews of agents")?.into()))
}

#[cfg(test)]
mod tests;
