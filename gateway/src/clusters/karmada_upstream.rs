//! The Karmada upstream: the server that had Karmada's group before, if the gateway stands beside a
//! Karmada (`--karmada-dialect=beside`).
//!
//! Requests reach it like a member: over the same kind of connections, with the same timeouts.
//! Metrics and logs give it a name that no cluster can have.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::cluster_name::ClusterName;
use api::secret::{ClusterEndpoint, ClusterSpec, Credential, Endpoint, Trust};
use arc_swap::ArcSwap;
use net::follow;
use net::tls::client::{self, TrustError};
use net::tls::end::{End, InUse};
use net::tls::keypair::{KeyPair, KeyPairError};
use net::words;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::ClusterError;
use super::cluster::{Cluster, connects_alike};
use super::common::Common;

/// Its address, its CA, and our client certificate.
#[derive(Debug, Clone)]
pub struct Options {
    /// `--karmada-upstream`
    pub url: Endpoint,
    pub ca: PathBuf,
    pub certificate: PathBuf,
    pub private_key: PathBuf,
}

/// The server, with the files from when they were last valid.
pub struct KarmadaUpstream {
    options: Options,
    common: Common,
    current: ArcSwap<Cluster>,
    is_current: Gauge,
}

/// The files cannot be used. The texts include the cause and the flag.
#[derive(Debug, thiserror::Error)]
pub enum KarmadaUpstreamError {
    #[error("{0}={path}: {error}", path = .1.display(), error = words::io(.2))]
    Read(&'static str, PathBuf, std::io::Error),
    #[error("{CA}: {0}")]
    Trust(#[from] TrustError),
    #[error("{CERTIFICATE} and {PRIVATE_KEY}: {0}")]
    KeyPair(#[from] KeyPairError),
    #[error("{UPSTREAM}: {0}")]
    Cluster(#[from] ClusterError),
    #[error("{UPSTREAM}: {0}")]
    Name(#[from] api::cluster_name::InvalidClusterName),
}

const UPSTREAM: &str = "--karmada-upstream";
const CA: &str = "--karmada-upstream-ca-file";
const CERTIFICATE: &str = "--karmada-upstream-cert-file";
const PRIVATE_KEY: &str = "--karmada-upstream-key-file";
/// Counts under the limits, which it does not share with a cluster of this name.
const NAME: &str = "karmada-upstream";

// === impl KarmadaUpstream ===

impl KarmadaUpstream {
    /// Reads the files for the first time.
    pub fn open(options: &Options, common: &Common, registry: &mut Registry) -> Result<Self, KarmadaUpstreamError> {
        let common = Common { loads: Arc::default(), ..common.clone() };
        let first = made(options, None, &common)?;
        let is_current = Gauge::default();
        registry.register(
            "cluster_gateway_karmada_upstream_current",
            "1 while the files for Karmada's API server are in use as they are, 0 if they could not be used when they \
             last changed",
            is_current.clone(),
        );
        is_current.set(1);
        Ok(Self { options: options.clone(), common, current: ArcSwap::from_pointee(first), is_current })
    }

    /// The cluster to which requests are sent.
    pub fn cluster(&self) -> Arc<Cluster> {
        self.current.load_full()
    }

    /// The URL for messages.
    pub fn url(&self) -> String {
        let Endpoint { authority, base_path, .. } = &self.options.url;
        format!("https://{authority}{base_path}")
    }

    /// Follows the files forever.
    pub async fn follow(self: Arc<Self>) {
        let Options { ca, certificate, private_key, .. } = self.options.clone();
        let failing = Arc::clone(&self);
        let reload = move || self.reload();
        let failed = move || {
            failing.is_current.set(0);
        };
        follow::follow("trust and client certificate for Karmada", vec![ca, certificate, private_key], reload, failed)
            .await;
    }

    fn reload(&self) -> Result<bool, KarmadaUpstreamError> {
        let before = self.cluster();
        let now = made(&self.options, Some(&before), &self.common)?;
        self.is_current.set(1);
        let is_new = !connects_alike(before.spec(), now.spec());
        if is_new {
            self.current.store(Arc::new(now));
        }
        Ok(is_new)
    }
}

impl InUse for KarmadaUpstream {
    fn ends(&self) -> Vec<End> {
        let cluster = self.cluster();
        let Credential::X509 { certificate, .. } = &cluster.spec().credential else { return Vec::new() };
        End::in_pem(&self.options.certificate, certificate).into_iter().collect()
    }
}

impl fmt::Debug for KarmadaUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KarmadaUpstream").field("url", &self.url()).finish_non_exhaustive()
    }
}

/// Keeps the connections of `previous` if nothing that they depend on has changed.
fn made(options: &Options, previous: Option<&Cluster>, common: &Common) -> Result<Cluster, KarmadaUpstreamError> {
    let read = |flag, path: &Path| {
        follow::read(path, follow::LONGEST).map_err(|error| KarmadaUpstreamError::Read(flag, path.to_owned(), error))
    };
    let ca = read(CA, &options.ca)?;
    let (certificate, key) = (read(CERTIFICATE, &options.certificate)?, read(PRIVATE_KEY, &options.private_key)?);
    // Checks each alone, so that the text names the invalid one.
    client::config(client::Trust::Bundle(&ca), None)?;
    KeyPair::from_pem(&certificate, &key)?;
    let spec = ClusterSpec {
        name: ClusterName::parse(NAME)?,
        uid: String::new(),
        resource_version: String::new(),
        creation_timestamp: None,
        labels: BTreeMap::new(),
        endpoint: ClusterEndpoint::at(options.url.clone()),
        trust: Trust::Bundle(ca),
        tls_server_name: None,
        credential: Credential::X509 { certificate, private_key: key.into() },
        alias: None,
        identity_rules: None,
        karmada: None,
        healthy: None,
        healthy_reason: None,
    };
    // No cluster's name begins with `--`.
    let metrics = common.metrics.for_cluster(UPSTREAM.into(), Some(""));
    Ok(Cluster::new(spec, previous, (metrics, CancellationToken::new()), common)?)
}
