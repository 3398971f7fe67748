//! One usable member cluster: its specification, the headers its credential needs, and the way to it.

use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use api::secret::{ClusterEndpoint, ClusterSpec, Credential, Endpoint, Scheme, Trust};
use http::HeaderValue;
use http::uri::Authority;
use net::tls::client;
use net::tls::keypair::{KeyPair, KeyPairError};
use rustls_pki_types::ServerName;
use secrecy::ExposeSecret;
use tokio::sync::Semaphore;

use crate::metrics::{ClusterMetrics, Metrics};
use crate::upstream::{MAX_DIALS, Target, Upstream};

/// A cluster as one generation of its Secret describes it. Immutable.
pub struct Cluster {
    spec: ClusterSpec,
    endpoint: Endpoint,
    /// `Bearer …`, marked sensitive. Absent when a client certificate is the credential.
    authorization: Option<HeaderValue>,
    upstream: Arc<Upstream>,
    metrics: Arc<ClusterMetrics>,
}

/// Why a well-formed specification still makes no usable cluster. Texts name the Secret's key.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("data key \"endpoint\": host or base path is not valid in a URL")]
    Endpoint,
    #[error("data key \"tls-server-name\" (or the endpoint's host) is not a DNS name or IP address: {0:?}")]
    ServerName(String),
    #[error("data key \"ca.crt\": {0}")]
    Trust(#[from] client::TrustError),
    #[error("data keys \"tls.crt\" and \"tls.key\": {0}")]
    KeyPair(#[from] KeyPairError),
    #[error("data key \"token\" cannot be sent in a header")]
    Token,
    #[error("it is reached through a tunnel (endpoint type ClusterProxy), and this gateway has none")]
    NoTunnel,
}

/// What all clusters are made with.
#[derive(Clone)]
pub struct Making {
    pub metrics: Metrics,
    /// Number of cores that serve requests.
    pub cores: usize,
    pub dial_timeout: Duration,
}

// === impl Cluster ===

impl Cluster {
    /// Makes a cluster of `spec`. Connections of `previous` are kept if endpoint, trust and client certificate are the same:
    /// a rotated token needs no new handshake.
    pub fn new(spec: ClusterSpec, previous: Option<&Self>, making: &Making) -> Result<Self, ClusterError> {
        let authorization = match &spec.credential {
            Credential::Token(token) => Some(bearer(token.expose_secret())?),
            Credential::X509 { .. } | Credential::Exec(_) => None,
        };
        let metrics = previous
            .map_or_else(|| making.metrics.for_cluster(spec.name.shared()), |previous| Arc::clone(&previous.metrics));
        let upstream = match previous {
            Some(previous) if connects_alike(&previous.spec, &spec) => Arc::clone(&previous.upstream),
            _ => Arc::new(Upstream::new(target(&spec, making.dial_timeout)?, making.cores, &metrics)),
        };
        let endpoint = url(&spec)?.clone();
        Ok(Self { spec, endpoint, authorization, upstream, metrics })
    }

    pub fn name(&self) -> &ClusterName {
        &self.spec.name
    }

    pub fn spec(&self) -> &ClusterSpec {
        &self.spec
    }

    /// The URL that proxied paths are appended to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    pub fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    pub fn metrics(&self) -> &Arc<ClusterMetrics> {
        &self.metrics
    }
}

/// Whether connections made for `a` serve `b`: all that a connection depends on is the same.
fn connects_alike(a: &ClusterSpec, b: &ClusterSpec) -> bool {
    let same_certificate = match (&a.credential, &b.credential) {
        (Credential::Token(_), Credential::Token(_)) => true,
        (
            Credential::X509 { certificate: one, private_key: key },
            Credential::X509 { certificate: other, private_key: other_key },
        ) => one == other && key.expose_secret() == other_key.expose_secret(),
        _ => false,
    };
    same_certificate && a.endpoint == b.endpoint && a.trust == b.trust && a.tls_server_name == b.tls_server_name
}

fn url(spec: &ClusterSpec) -> Result<&Endpoint, ClusterError> {
    match &spec.endpoint {
        ClusterEndpoint::Const(fixed) => Ok(&fixed.url),
        ClusterEndpoint::ClusterProxy => Err(ClusterError::NoTunnel),
    }
}

fn bearer(token: &str) -> Result<HeaderValue, ClusterError> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| ClusterError::Token)?;
    value.set_sensitive(true);
    Ok(value)
}

fn target(spec: &ClusterSpec, dial_timeout: Duration) -> Result<Target, ClusterError> {
    let Endpoint { scheme, host, port, authority, .. } = url(spec)?;
    let authority = Authority::try_from(authority.as_str()).map_err(|_| ClusterError::Endpoint)?;
    let host_header = HeaderValue::from_str(authority.as_str()).map_err(|_| ClusterError::Endpoint)?;
    let tls = match scheme {
        Scheme::Http => None,
        Scheme::Https => {
            let name = spec.tls_server_name.as_deref().unwrap_or(host);
            let server_name =
                ServerName::try_from(name.to_owned()).map_err(|_| ClusterError::ServerName(name.to_owned()))?;
            Some((client::config(trust(spec), identity(spec)?.as_ref())?, server_name))
        }
    };
    Ok(Target {
        host: host.clone(),
        port: *port,
        scheme: if tls.is_some() { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP },
        authority,
        host_header,
        tls,
        dial_timeout,
        dials: Semaphore::new(MAX_DIALS),
    })
}

fn trust(spec: &ClusterSpec) -> client::Trust<'_> {
    match &spec.trust {
        Trust::Bundle(pem) => client::Trust::Bundle(pem),
        Trust::SystemRoots => client::Trust::SystemRoots,
        Trust::Insecure => client::Trust::Insecure,
    }
}

fn identity(spec: &ClusterSpec) -> Result<Option<KeyPair>, ClusterError> {
    match &spec.credential {
        Credential::X509 { certificate, private_key } => {
            Ok(Some(KeyPair::from_pem(certificate, private_key.expose_secret())?))
        }
        Credential::Token(_) | Credential::Exec(_) => Ok(None),
    }
}
