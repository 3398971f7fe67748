//! The parts of a server, and how they start.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use links::{Agents, Limits};
use net::drain::Drain;
use net::runtime::{BackgroundRuntime, block_on};
use net::throttle::LogThrottle;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use telemetry::readiness::Readiness;
use tunnel::Budget;

use super::PROGRAM;
use crate::admin::{self, Admin};
use crate::args::{Config, HubConfig};
use crate::frontend::Frontends;
use crate::metrics::Metrics;
use crate::shared::{Common, Shared};

/// The listeners, and the state they share.
pub(super) struct Parts {
    pub(super) admin: Admin,
    pub(super) frontends: Frontends,
    pub(super) agents: Agents,
    pub(super) shared: Shared,
    pub(super) shutdown_delay: Duration,
    pub(super) drain_timeout: Duration,
}

// === impl Parts ===

impl Parts {
    pub(super) fn build(config: &Config, runtime: &BackgroundRuntime) -> anyhow::Result<Self> {
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
        if let HubConfig::Kubeconfig(path) = &config.hub
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
    pub(super) async fn shut_down(&self) {
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
fn hub(hub: &HubConfig, runtime: &BackgroundRuntime) -> anyhow::Result<Option<auth::HubClients>> {
    let path = match hub {
        HubConfig::Kubeconfig(path) => Some(path.clone()),
        HubConfig::InCluster => None,
        HubConfig::None => return Ok(None),
    };
    let client = block_on(runtime.handle(), async move { hub::client::client(path.as_deref(), PROGRAM).await })?;
    Ok(Some(client.context("the hub, for reviews of agents")?.into()))
}
