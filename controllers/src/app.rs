//! Wiring: builds everything in order, runs it while this replica leads, then ends it.

mod engine;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use fleet::Fleet;
use hub::client::{HubClientError, Server};
use kube::Client;
use net::process;
use net::runtime::{BackgroundRuntime, block_on};
use prometheus_client::registry::Registry;
use telemetry::admin::{Endpoint, Probes};
use telemetry::readiness::Readiness;
use tokio_util::sync::CancellationToken;

use crate::admin::{self, CONDITIONS};
use crate::args::{self, Config};
use crate::calls::{LAST_MOMENT, PROGRAM, runtime};
use crate::explained::Explained;
use crate::metrics::Metrics;
use crate::reports::Reports;

/// Time at shutdown for a write in flight, and for the release of the Lease.
const LAST_CALLS: Duration = Duration::from_secs(6);

/// Running controllers. Dropping them stops them at once: their Lease then expires by itself.
pub struct Controllers {
    admin: Endpoint,
    readiness: Readiness,
    end: CancellationToken,
    work: tokio::task::JoinHandle<()>,
    /// The last field, because the others live on the runtime.
    runtime: BackgroundRuntime,
}

// === impl Controllers ===

impl Controllers {
    /// Starts from command-line arguments, the program's name first. It can be called inside or
    /// outside an async runtime, because it brings its own.
    pub fn start<I, T>(arguments: I) -> anyhow::Result<Self>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        Self::assemble(Config::new(&args::parse_from(arguments)?)?, runtime("controllers")?)
    }

    /// Runs as the process's main function: until SIGTERM or SIGINT. A second signal ends the
    /// process at once.
    pub fn run(config: Config) -> anyhow::Result<()> {
        let runtime = runtime("controllers")?;
        process::run(&runtime.handle().clone(), || Self::assemble(config, runtime), Self::stop, || ())
    }

    fn assemble(config: Config, runtime: BackgroundRuntime) -> anyhow::Result<Self> {
        let handle = runtime.handle();
        let mut registry = Registry::default();
        let reports = Arc::new(Reports::default());
        let metrics = Metrics::register(&mut registry, Arc::clone(&reports));
        let readiness = Readiness::default();
        let probes = Probes {
            readiness: readiness.clone(),
            conditions: CONDITIONS,
            metrics: telemetry::metrics::Metrics::new(registry),
        };
        let explained = Explained::default();
        let told = admin::Reported { reports: Arc::clone(&reports), explained: explained.clone() };
        let admin = admin::start(config.admin_listen, probes, told, handle)?;
        let (hub, karmada, members) = clients(&config, &runtime)?;
        let config = knowing_hub(config, &runtime)?;
        tracing::info!(
            sources = ?config.sources, parts = ?config.parts, namespace = config.secret_namespace,
            admin = %admin.address(), "running"
        );
        let end = CancellationToken::new();
        let engine =
            engine::Engine { config, hub, karmada, members, reports, metrics, readiness: readiness.clone(), explained };
        let work = handle.spawn(engine.run(end.clone()));
        Ok(Self { admin, readiness, end, work, runtime })
    }

    /// Address of the admin endpoint: with the real port, even if 0 was requested.
    pub fn admin_address(&self) -> SocketAddr {
        self.admin.address()
    }

    /// Ends as on SIGTERM: releases the Lease, and returns when everything has ended.
    pub fn stop(self) -> anyhow::Result<()> {
        let Self { admin, readiness, end, work, runtime } = self;
        let not_ready = readiness.block("shutdown");
        end.cancel();
        let ended = process::drained(runtime.handle(), work, LAST_CALLS);
        let _ = runtime.end(2 * LAST_MOMENT);
        drop((admin, not_ready));
        ended?.context("the controllers ended unexpectedly")
    }
}

/// Adds the hub's address, so that a cluster whose path leads through the hub's gateway is refused.
fn knowing_hub(mut config: Config, runtime: &BackgroundRuntime) -> anyhow::Result<Config> {
    let kubeconfig = config.kubeconfig.clone();
    let url = block_on(runtime.handle(), async move { hub::client::url(kubeconfig.as_deref()).await })?;
    let (url, is_own_cluster) = (url.context("the hub")?, config.kubeconfig.is_none());
    config.rules.endpoints.know(&url, is_own_cluster, hub::client::domain());
    Ok(config)
}

/// Clients of the hub, of Karmada's control plane, and of the members through the gateway.
fn clients(config: &Config, runtime: &BackgroundRuntime) -> anyhow::Result<(Client, Client, Fleet)> {
    let (hub, karmada, gateway) =
        (config.kubeconfig.clone(), config.karmada_kubeconfig.clone(), config.gateway.clone());
    let all = block_on(runtime.handle(), async move {
        let client = hub::client::client(hub.as_deref(), PROGRAM).await?;
        let karmada = match karmada {
            Some(path) => hub::client::client(Some(&path), PROGRAM).await?,
            None => client.clone(),
        };
        let server = gateway.url.as_deref().map(|url| Server {
            url,
            ca_file: gateway.ca_file.as_deref(),
            token_file: gateway.token_file.clone(),
        });
        let members = hub::pool::pooled_client(hub.as_deref(), server, PROGRAM).await?;
        Ok::<_, HubClientError>((client, karmada, Fleet::new(members)))
    })?;
    all.context("the hub")
}
