//! What the configuration makes: the source of clusters, what all clusters share, the
//! authentication of callers, and the Karmada upstream.

use std::sync::Arc;

use net::runtime::block_on;
use prometheus_client::registry::Registry as MetricsRegistry;
use telemetry::certificates::Certificates;
use tokio::runtime::Handle;

use super::proxy_ca;
use crate::app::cluster_source::{ClusterSource, HubSource};
use crate::clusters::files::Files;
use crate::clusters::{Clusters, Common, Issuing, KarmadaUpstream, SecondLook};
use crate::config::{Config, Source};
use crate::holding::Budget;
use crate::hub;
use crate::limits::Limits;
use crate::metrics::{Metrics, SecondLooks};
use crate::tunnel::Tunnel;

pub(super) fn common(
    config: &Config,
    control: &Handle,
    tunnel: Option<Arc<Tunnel>>,
    metrics: &Metrics,
    budget: &Budget,
) -> anyhow::Result<Common> {
    Ok(Common {
        metrics: metrics.clone(),
        loads: Arc::default(),
        cores: config.threads,
        dial_timeout: config.dial_timeout,
        issuing: Issuing::new(&config.exec, control),
        annotations: config.exchange.annotations(),
        circuit_failures: config.circuit_failures,
        proxy_ca: proxy_ca(config)?,
        tunnel,
        budget: budget.clone(),
    })
}

/// Its metrics exist without a hub, too.
pub(super) fn second_look(
    hub: Option<&hub::Hub>,
    clusters: &Arc<Clusters>,
    control: &Handle,
    registry: &mut MetricsRegistry,
) -> Option<SecondLook> {
    let looks = SecondLooks::register(registry);
    hub.cloned().map(|hub| SecondLook::new(hub, Arc::clone(clusters), control, looks))
}

pub(super) fn sources(
    config: &Config,
    control: &Handle,
    metrics: &auth::Metrics,
    limits: &Limits,
) -> anyhow::Result<(ClusterSource, auth::Auth)> {
    match &config.source {
        Source::Hub { namespace, ocm, secrets, authentication, authorization } => {
            let client = |path: &Option<std::path::PathBuf>| {
                let (path, user_agent) = (path.clone(), config.user_agent.clone());
                block_on(control, async move { hub::client(path.as_deref(), &user_agent).await })?
            };
            let hub =
                auth::HubClients { authentication: client(authentication)?, authorization: client(authorization)? };
            let auth = auth::Auth::build(&config.auth, Some(hub), control, metrics)?;
            let (path, user_agent) = (secrets.clone(), config.user_agent.clone());
            let watches = async move { hub::watch_client(path.as_deref(), &user_agent).await };
            let watches = block_on(control, watches)??;
            let client = client(secrets)?;
            let hub = hub::Hub::new(client.clone(), watches, namespace).telling(limits.count_of_hub());
            Ok((ClusterSource::Hub(Box::new(HubSource { client, namespace: namespace.clone(), hub, ocm: *ocm })), auth))
        }
        Source::Standalone { directory, kubeconfig } => {
            let auth = auth::Auth::build(&config.auth, None, control, metrics)?;
            Ok((ClusterSource::Files(Files { directory: directory.clone(), kubeconfig: kubeconfig.clone() }), auth))
        }
    }
}

/// Watches the client certificates in kubeconfigs that the gateway shows to the hub.
pub(super) fn shown_to_hub(config: &Config, shown: &Certificates) {
    let Source::Hub { secrets, authentication, authorization, .. } = &config.source else { return };
    for path in [secrets, authentication, authorization].into_iter().flatten() {
        if let Some(certificate) = hub::ClientCertificate::of(path) {
            shown.watch(Arc::new(certificate));
        }
    }
}

/// The Karmada upstream, whose files are followed from here on.
pub(super) fn karmada_upstream(
    config: &Config,
    control: &Handle,
    common: &Common,
    registry: &mut MetricsRegistry,
    shown: &Certificates,
) -> anyhow::Result<Option<Arc<KarmadaUpstream>>> {
    let Some(options) = &config.karmada_upstream else { return Ok(None) };
    let karmada_upstream = Arc::new(KarmadaUpstream::open(options, common, registry)?);
    shown.watch(Arc::clone(&karmada_upstream) as _);
    control.spawn(Arc::clone(&karmada_upstream).follow());
    Ok(Some(karmada_upstream))
}
