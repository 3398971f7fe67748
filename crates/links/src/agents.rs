//! The agents' listener: TLS, registration, authentication and authorization, then a link in the
//! registry while it lives and its credential is valid. The tunnel-server and the gateway use it.

mod changes;
mod claim;
mod config;
mod doubts;
mod grants;
mod judge;
mod judging;
mod listener;
mod supervisor;
mod waiting;

use std::hash::RandomState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use net::drain::Drain;
use net::listen::{self, Sharing};
use net::pending::Pending;
use net::tls;
use net::tls::policy::Policy;
use net::tls::server::ServingCertificate;
use prometheus_client::registry::Registry as MetricsRegistry;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::changes::Changes;
use self::doubts::Doubts;
use self::judge::{Authorities, Judge};
use self::judging::Judging;
use self::listener::Listener;
use crate::registry::{Metrics, Registry};
use net::throttle::LogThrottle;

pub use self::config::AgentsConfig;

/// A running listener. A drop ends it and all links at once, and resets their streams.
#[derive(Debug)]
pub struct Agents {
    address: SocketAddr,
    certificate: Arc<ServingCertificate>,
    registry: Arc<Registry>,
    drain_timeout: Duration,
    /// Ends the links in order, after everything in flight is sent.
    leave: CancellationToken,
    end: CancellationToken,
    links: TaskTracker,
}

// === impl Agents ===

impl Agents {
    /// Binds and starts on `runtime`, which must also drive the clients of `hub`. With `hub`,
    /// TokenReviews and SubjectAccessReviews decide. Without it, client certificates with the
    /// common name `system:tunnel-agent:<cluster>` do. Fails without both hub and CA, because then
    /// no agent could authenticate.
    pub fn start(
        config: &AgentsConfig,
        hub: Option<auth::HubClients>,
        runtime: &Handle,
        metrics: &mut MetricsRegistry,
    ) -> anyhow::Result<Self> {
        if hub.is_none() && config.client_ca_file.is_none() {
            bail!(
                "tunnel-agents cannot be authenticated: give a CA file for their client certificates, or a hub that \
                 issued their tokens"
            );
        }
        if hub.is_none() && config.hub_client_ca {
            bail!("certificates of the hub's client CA need a hub: its review decides about them");
        }
        let authorities = Authorities { file: config.client_ca_file.clone(), of_hub: config.hub_client_ca };
        let roles = hub.as_ref().map(|hub| hub.authorization.clone());
        let judge = Judge::new(authorities, config.recheck, hub, runtime, metrics)?;
        Self::serve(config, judge, roles, runtime, metrics)
    }

    /// `roles` is the client of the hub whose roles and bindings are watched.
    fn serve(
        config: &AgentsConfig,
        judge: Judge,
        roles: Option<kube::Client>,
        runtime: &Handle,
        metrics: &mut MetricsRegistry,
    ) -> anyhow::Result<Self> {
        let certificate =
            ServingCertificate::load(config.serving.clone()).context("the agents' serving certificate")?;
        let policy = Policy { alpn: vec![tls::HTTP_11], ..Policy::default() };
        let tls = tls::server::config(certificate.clone(), &policy);
        let (listener, address) = bind(config.listen, runtime)?;
        let metrics = Metrics::register(metrics);
        let agents = Self {
            address,
            certificate: Arc::clone(&certificate),
            registry: Arc::new(Registry::new(config.limits, metrics.clone())),
            drain_timeout: config.drain_timeout,
            leave: CancellationToken::new(),
            end: CancellationToken::new(),
            links: TaskTracker::new(),
        };
        let doubts = Arc::new(Doubts::default());
        if let Some(client) = roles {
            let changes = Changes::new(Arc::clone(&doubts), metrics.clone());
            runtime.spawn(agents.end.clone().run_until_cancelled_owned(changes.follow(client)));
        }
        let watched = metrics.clone();
        let following = move || watched.reload_failed();
        let serving = Listener {
            tls: tls.into(),
            judge,
            doubts,
            registry: Arc::clone(&agents.registry),
            metrics,
            settings: config.settings.clone(),
            server: net::random::identifier(),
            recheck: config.recheck,
            leave: agents.leave.clone(),
            end: agents.end.clone(),
            links: agents.links.clone(),
            pending: Pending::new(config.limits.unregistered, config.limits.unregistered_per_address),
            judging: Judging::new(config.limits.registering, config.limits.registering_per_address),
            hasher: RandomState::new(),
            sheds: LogThrottle::default(),
            refusals: LogThrottle::default(),
        };
        runtime.spawn(agents.end.clone().run_until_cancelled_owned(certificate.follow(|| {}, following)));
        runtime.spawn(agents.end.clone().run_until_cancelled_owned(serving.run(listener)));
        tracing::info!(%address, "accepting tunnel-agents");
        Ok(agents)
    }

    /// The listener's address, with the real port even if the configuration has port 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The serving certificate.
    pub fn certificate(&self) -> &Arc<ServingCertificate> {
        &self.certificate
    }

    pub fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Accepts no new links and streams, asks all agents to link elsewhere, and waits for the
    /// streams to end: until the configured timeout or the hard signal of `drain`, whichever comes
    /// first. Then ends the links, and resets the streams that are left. Returns whether none were
    /// left.
    pub async fn drain(&self, drain: &Drain) -> bool {
        let _guard = drain.guard();
        let deadline = Instant::now() + self.drain_timeout;
        self.registry.start_draining();
        // Even after the hard signal, because agents that are asked look for another server before
        // this one is gone. The timeout keeps an agent that does not answer from delaying the
        // others.
        let _ = timeout(LEAVE.min(self.drain_timeout), self.registry.leave_all()).await;
        let all_ended = tokio::select! {
            biased;
            () = self.registry.until_idle() => true,
            () = drain.hard() => false,
            () = sleep_until(deadline) => false,
        };
        if all_ended {
            self.finish().await;
        } else {
            tracing::warn!(streams = self.registry.streams(), "resetting unfinished streams");
        }
        self.end.cancel();
        self.links.close();
        // After this, the links have left the registry and their sockets are closed.
        let _ = timeout(AFTER_END, self.links.wait()).await;
        all_ended
    }

    /// Ends links without streams, in order.
    async fn finish(&self) {
        self.leave.cancel();
        self.links.close();
        let _ = timeout(LAST_WORDS, self.links.wait()).await;
    }
}

/// Timeout for agents to read that they must link elsewhere.
const LEAVE: Duration = Duration::from_secs(2);
/// Timeout for bytes in flight on a link to leave the process.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Timeout for tasks to notice that they must end.
const AFTER_END: Duration = Duration::from_secs(1);

impl Drop for Agents {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

fn bind(address: SocketAddr, runtime: &Handle) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let context = || format!("cannot listen on {address} for tunnel-agents");
    let listener = listen::reuse_port(address, 1, Sharing::Refused).with_context(context)?.remove(0);
    let _entered = runtime.enter();
    let listener = TcpListener::from_std(listener).with_context(context)?;
    let address = listener.local_addr().with_context(context)?;
    Ok((listener, address))
}

#[cfg(test)]
mod tests;
