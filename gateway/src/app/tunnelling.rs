//! The tunnel of a gateway: links to separate tunnel-servers, and the tunnel-server in this
//! process.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use links::{Agents, AgentsConfig, Limits};
use net::drain::Drain;
use net::runtime::block_on;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::config::{Config, Source};
use crate::hub;
use crate::metrics::TunnelMetrics;
use crate::tunnel::{Embedded, EmbeddedConfig, Remote, Tunnel};

/// Threads of the tunnel-server in this process: it only moves bytes between sockets, and the
/// serving cores do the rest.
const WORKERS: usize = 2;
/// Time after the last request for sending agents the frames that end their links.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A tunnel-server in this process. A drop stops it without draining.
pub struct TunnelServer {
    agents: Arc<Agents>,
    drain: Drain,
    runtime: Option<Runtime>,
}

/// Starts the tunnel to members that cannot be dialled, and the tunnel-server in this process, each
/// if configured.
pub fn start(
    config: &Config,
    control: &Handle,
    metrics: &mut MetricsRegistry,
    certificates: &Certificates,
) -> anyhow::Result<(Option<Arc<Tunnel>>, Option<TunnelServer>)> {
    let counted = TunnelMetrics::register(metrics);
    let settings = &config.tunnel.settings;
    let remote = config.tunnel.remote.as_ref();
    let remote = remote.map(|remote| Remote::new(remote, settings, config.dial_timeout, counted.links().clone()));
    let remote = remote.transpose()?;
    if let Some(remote) = &remote {
        certificates.watch(Arc::clone(remote.certificate()) as _);
        let told = counted.clone();
        control.spawn(remote.follow(move || told.reload_failed()));
    }
    let server = config.tunnel.embedded.as_ref().map(|embedded| TunnelServer::start(embedded, config, metrics));
    let server = server.transpose().context("--tunnel-listen")?;
    if let Some(server) = &server {
        certificates.watch(Arc::clone(server.agents.certificate()) as _);
    }
    let embedded = server.as_ref().map(|server| Embedded::new(Arc::clone(server.agents.registry())));
    Ok((Tunnel::new(embedded, remote, counted), server))
}

// === impl TunnelServer ===

impl TunnelServer {
    fn start(embedded: &EmbeddedConfig, config: &Config, metrics: &mut MetricsRegistry) -> anyhow::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("tunnel")
            .enable_all()
            .build()
            .context("cannot build a runtime")?;
        // Held from here on: a runtime must not be dropped where a task may run.
        let mut server = DetachedRuntime(Some(runtime));
        let handle = server.handle();
        let serving = embedded.serving.clone().map_or_else(|| config.serving.main.files(), Ok)?;
        let agents = AgentsConfig {
            listen: embedded.listen,
            serving,
            client_ca_file: embedded.client_ca_file.clone(),
            hub_client_ca: embedded.hub_client_ca,
            settings: config.tunnel.settings.clone(),
            drain_timeout: embedded.drain_timeout.unwrap_or(config.drain_timeout),
            recheck: AgentsConfig::RECHECK,
            limits: Limits::default(),
        };
        let agents = Arc::new(Agents::start(&agents, reviews(config, &handle)?, &handle, metrics)?);
        tracing::info!(address = %agents.address(), "accepting links of tunnel-agents");
        Ok(Self { agents, drain: Drain::new(), runtime: server.0.take() })
    }

    pub fn address(&self) -> SocketAddr {
        self.agents.address()
    }

    /// A separate value that ends the links in order.
    pub fn leaving(&self) -> Leaving {
        Leaving { agents: Arc::clone(&self.agents), drain: self.drain.clone() }
    }
}

impl Drop for TunnelServer {
    fn drop(&mut self) {
        drop(DetachedRuntime(self.runtime.take()));
    }
}

/// Ends the links of agents.
pub struct Leaving {
    agents: Arc<Agents>,
    drain: Drain,
}

// === impl Leaving ===

impl Leaving {
    /// Asks agents to link elsewhere while `requests` end, then ends their links: by then these
    /// only carry idle connections.
    pub async fn beside<T>(self, requests: impl Future<Output = T>) -> T {
        let Self { agents, drain } = self;
        drain.start();
        let signals = drain.clone();
        let leaving = tokio::spawn(async move { agents.drain(&signals).await });
        let ended = requests.await;
        drain.finish(Duration::ZERO).await;
        if tokio::time::timeout(LAST_WORDS, leaving).await.is_err() {
            tracing::debug!("links of some agents had not ended");
        }
        ended
    }
}

/// A runtime that may be dropped anywhere.
struct DetachedRuntime(Option<Runtime>);

impl DetachedRuntime {
    fn handle(&self) -> Handle {
        self.0.as_ref().expect("held until taken").handle().clone()
    }
}

impl Drop for DetachedRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// The hub that decides about agents, with connections of the agents' own runtime.
fn reviews(config: &Config, runtime: &Handle) -> anyhow::Result<Option<auth::HubClients>> {
    let Source::Hub { authentication, authorization, .. } = &config.source else { return Ok(None) };
    let client = |path: &Option<PathBuf>| {
        let (path, user_agent) = (path.clone(), config.user_agent.clone());
        block_on(runtime, async move { hub::client(path.as_deref(), &user_agent).await })?
    };
    Ok(Some(auth::HubClients { authentication: client(authentication)?, authorization: client(authorization)? }))
}
