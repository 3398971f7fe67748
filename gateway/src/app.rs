//! Wiring: binds and builds everything in order, runs it, then drains.

mod assembly;
mod cluster_source;
mod ports;
mod threads;
mod tunnelling;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use net::process;
use net::tls::server as tls_server;
use telemetry::logs::LogLevel;
use telemetry::readiness::NotReady;
use tokio_util::sync::CancellationToken;

use self::assembly::{Built, build};
use self::ports::Ports;
use self::threads::Threads;
use self::tunnelling::{Leaving, TunnelServer};
use crate::config::Config;
use crate::needs::RequestNeeds;

/// A running gateway. A drop stops it without draining.
pub struct Gateway {
    address: SocketAddr,
    user_server: Option<SocketAddr>,
    needs: Arc<RequestNeeds>,
    threads: Threads,
    shutdown_delay: Duration,
    drain_timeout: Duration,
    /// Held so that its tasks continue.
    auth: auth::Auth,
    /// The tunnel-server in this process, if agents may link to it.
    tunnel_server: Option<TunnelServer>,
    /// Last, so that events of other fields while these end are still written.
    audit: Option<audit::Log>,
}

// === impl Gateway ===

impl Gateway {
    /// Returns once everything is bound and running; readiness comes later. Blocks briefly. May be
    /// called inside or outside an async runtime, because it starts its own.
    pub fn start_with(config: &Config) -> anyhow::Result<Self> {
        Self::assemble(config, Threads::start(config.threads)?, None)
    }

    /// Runs as the process's only purpose until SIGTERM or SIGINT, then drains. A second signal
    /// ends the process at once. Requests may change the process's log level by `log_level`.
    pub fn run(config: &Config, log_level: LogLevel) -> anyhow::Result<()> {
        let threads = Threads::start(config.threads)?;
        let control = threads.control().clone();
        let start = || Self::assemble(config, threads, Some(log_level));
        process::run(&control, start, Self::stop, exec_credential::end_all)
    }

    fn assemble(config: &Config, mut threads: Threads, log_level: Option<LogLevel>) -> anyhow::Result<Self> {
        for thing in &config.without_effect {
            tracing::info!("{thing} is accepted for compatibility and has no effect");
        }
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let certificates = config.serving.load()?;
        let ports = Ports::bind(config)?;
        let (address, user_server) = (ports.address()?, ports.user_server_address()?);
        let Built { needs, auth, tunnel_server, audit } = build(config, threads.control(), log_level, &certificates)?;
        ports.serve(&mut threads, &needs, &tls_server::config(certificates, &config.serving.policy));
        tracing::info!(%address, threads = config.threads, "serving");
        if let Some(address) = user_server {
            tracing::info!(%address, "serving members as Open Cluster Management's user server does");
        }
        Ok(Self {
            address,
            user_server,
            needs,
            threads,
            shutdown_delay: config.shutdown_delay,
            drain_timeout: config.drain_timeout,
            auth,
            tunnel_server,
            audit,
        })
    }

    /// The listener's address, with the real port even if the configuration has port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that serves members like Open Cluster Management's user server, if there is one.
    pub fn user_server_address(&self) -> Option<SocketAddr> {
        self.user_server
    }

    /// The address to which tunnel-agents may link, if there is one.
    pub fn tunnel_address(&self) -> Option<SocketAddr> {
        self.tunnel_server.as_ref().map(TunnelServer::address)
    }

    /// Blocks until the gateway is ready.
    pub fn wait_ready(&self, patience: Duration) -> anyhow::Result<()> {
        if self.needs.readiness.wait(patience) {
            return Ok(());
        }
        Err(anyhow!("not ready after {patience:?}: {}", self.needs.readiness.blocked_by().join(", ")))
    }

    /// Shuts down like SIGTERM, and returns when everything has ended.
    pub fn stop(self) -> anyhow::Result<()> {
        let (needs, delay, patience) = (Arc::clone(&self.needs), self.shutdown_delay, self.drain_timeout);
        let leaving = self.tunnel_server.as_ref().map(TunnelServer::leaving);
        let done = self.threads.control().spawn(async move { shut_down(&needs, leaving, delay, patience).await });
        self.threads.join(done, self.shutdown_delay + self.drain_timeout)?;
        drop(self.tunnel_server);
        drop(self.auth);
        // After the last request, so that all queued events are written.
        drop(self.audit);
        Ok(())
    }
}

/// Ends readiness first, so that no new requests are sent here; then drains those in flight.
async fn shut_down(needs: &RequestNeeds, leaving: Option<Leaving>, delay: Duration, patience: Duration) {
    let not_ready = needs.readiness.block("shutdown");
    tokio::time::sleep(delay).await;
    let requests = needs.drain.finish(patience);
    let in_time = match leaving {
        Some(leaving) => leaving.beside(requests).await,
        None => requests.await,
    };
    if in_time {
        tracing::info!("drained");
    } else {
        tracing::warn!(after = ?patience, "cut off unfinished requests and upgrades");
    }
    if let Some(traces) = &needs.traces {
        traces.shut_down().await;
    }
    drop(not_ready);
}

async fn ready_when_loaded(mut loaded: tokio::sync::watch::Receiver<bool>, unknown: NotReady) {
    if loaded.wait_for(|loaded| *loaded).await.is_ok() {
        drop(unknown);
    } else {
        // The task that would report it is gone. Never to become ready is better than to become
        // ready without the trusted CAs.
        CancellationToken::new().cancelled().await;
    }
}
