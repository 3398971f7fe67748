//! Builds the parts of a gateway from its configuration.

mod sources;

use std::sync::Arc;

use anyhow::Context;
use net::drain::Drain;
use net::runtime::block_on;
use net::tls;
use net::tls::server::ServingCertificates;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use telemetry::logs::LogLevel;
use telemetry::readiness::Readiness;
use tokio::runtime::Handle;
use traces::Traces;

use self::sources::{common, karmada_upstream, second_look, shown_to_hub, sources};
use super::cluster_source::HubContext;
use super::tunnelling::TunnelServer;
use super::{ready_when_loaded, tunnelling};
use crate::clusters::{Clusters, Registry, View};
use crate::config::{Config, Source};
use crate::exchange::{self, Exchange, RulesFile};
use crate::holding::Budget;
use crate::limits::Limits;
use crate::metrics::{HeldBytes, Metrics};
use crate::needs::{RequestNeeds, Settings};
use crate::{hub, probes};

/// Read only here, and checked, so that an invalid one is found at start-up and not by the first
/// cluster that needs it.
fn proxy_ca(config: &Config) -> anyhow::Result<Option<Arc<[u8]>>> {
    let Some(path) = &config.proxy_ca_file else { return Ok(None) };
    let context = || format!("--proxy-ca-file={}", path.display());
    let pem = std::fs::read(path).with_context(context)?;
    tls::client::config(tls::client::Trust::Bundle(&pem), None).with_context(context)?;
    Ok(Some(pem.into()))
}

/// The parts that run beside the serving cores.
pub(super) struct Built {
    pub(super) needs: Arc<RequestNeeds>,
    pub(super) auth: auth::Auth,
    pub(super) tunnel_server: Option<TunnelServer>,
    pub(super) audit: Option<audit::Log>,
}

pub(super) fn build(
    config: &Config,
    control: &Handle,
    log_level: Option<LogLevel>,
    certificates: &Arc<ServingCertificates>,
) -> anyhow::Result<Built> {
    let mut registry = MetricsRegistry::default();
    let metrics = metrics(config, &mut registry);
    let shown = shown_certificates(config, certificates, &mut registry);
    let auth_metrics = auth::Metrics::register(&mut registry);
    let audit_metrics = audit::Metrics::register(&mut registry);
    let audit = config.audit.as_ref().map(|log| audit::Log::start(log, audit_metrics)).transpose()?;
    let traces = traces(config, control, &mut registry)?;
    let limits = Limits::new(config.caps, &mut registry);
    let budget = budget(config, &mut registry);
    let exchange = exchange(config, control, &mut registry)?;
    let readiness = Readiness::default();
    let (unlisted, unknown) = (readiness.block("clusters"), readiness.block("identity"));

    let (source, auth) = sources(config, control, &auth_metrics, &limits)?;
    control.spawn(ready_when_loaded(auth.loaded.clone(), unknown));

    let (tunnel, tunnel_server) = tunnelling::start(config, control, &mut registry, &shown)?;
    let clusters = Arc::new(Clusters::default());
    let common = common(config, control, tunnel, &metrics, &budget)?;
    let karmada_upstream = karmada_upstream(config, control, &common, &mut registry, &shown)?;
    let registered = Registry::new(Arc::clone(&clusters), config.rules, common, unlisted);
    let HubContext { hub, managed, located_by } = source.start(control, registered, &readiness);
    if let Some(hub) = &hub {
        control.spawn(probes::run(Arc::clone(&clusters), config.probing.clone(), hub.clone()));
    }
    control.spawn(Arc::clone(certificates).follow());
    let second_look = second_look(hub.as_ref(), &clusters, control, &mut registry);

    let needs = Arc::new(RequestNeeds {
        authenticator: Arc::clone(&auth.authenticator),
        authorizer: Arc::clone(&auth.authorizer),
        clusters,
        second_look,
        managed,
        hub,
        karmada_upstream,
        view: View::new(config.rules, config.credentials, config.gates.healthiness_check).located_by(located_by),
        exchange,
        limits,
        budget,
        audit: audit.as_ref().map(audit::Log::sink),
        traces,
        readiness,
        drain: Drain::new(),
        own_metrics: metrics.of_none(),
        failure_log: crate::failures::FailureLog::default(),
        metrics,
        exposition: telemetry::metrics::Metrics::new(registry),
        log_level,
        control: control.clone(),
        settings: settings(config, control)?,
    });
    Ok(Built { needs, auth, tunnel_server, audit })
}

fn metrics(config: &Config, registry: &mut MetricsRegistry) -> Metrics {
    let metrics = Metrics::register(registry);
    if config.ocm_proxy_metrics { metrics.with_proxied(registry) } else { metrics }
}

/// The budget of bytes held for clients.
fn budget(config: &Config, registry: &mut MetricsRegistry) -> Budget {
    let budget = Budget::of_cores(config.held_bytes, config.threads);
    registry.register_collector(Box::new(HeldBytes(budget.clone())));
    budget
}

/// The certificates whose expiry metrics show.
fn shown_certificates(
    config: &Config,
    certificates: &Arc<ServingCertificates>,
    registry: &mut MetricsRegistry,
) -> Certificates {
    let shown = Certificates::register("cluster_gateway", registry);
    shown.watch(Arc::clone(certificates) as _);
    shown_to_hub(config, &shown);
    shown
}

/// `None`, without metrics, if tracing is off.
fn traces(config: &Config, control: &Handle, registry: &mut MetricsRegistry) -> anyhow::Result<Option<Traces>> {
    let Some(tracing) = &config.tracing else { return Ok(None) };
    let metrics = traces::Metrics::register(registry);
    let traces = Traces::start(tracing, "cluster-gateway", env!("CARGO_PKG_VERSION"), control, &metrics)?;
    tracing::info!(endpoint = %tracing.endpoint, "traces are exported");
    Ok(Some(traces))
}

/// With the hub's address: a cluster whose path leads on from there would lead back here.
fn settings(config: &Config, control: &Handle) -> anyhow::Result<Settings> {
    let mut settings = config.settings.clone();
    if let Source::Hub { secrets, .. } = &config.source {
        let path = secrets.clone();
        let url = block_on(control, async move { hub::url(path.as_deref()).await })??;
        settings.endpoints.know(&url, secrets.is_none(), hub::domain());
    }
    Ok(settings)
}

/// The identity rules, whose file is followed from here on.
fn exchange(config: &Config, control: &Handle, registry: &mut MetricsRegistry) -> anyhow::Result<Exchange> {
    let metrics = exchange::Metrics::register(registry);
    let Some(path) = &config.exchange.file else { return Ok(Exchange::new(&config.exchange, Arc::default())) };
    let file = RulesFile::open(path, metrics).context("--cluster-gateway-proxy-config")?;
    let rules = file.rules();
    control.spawn(file.follow());
    Ok(Exchange::new(&config.exchange, rules))
}
