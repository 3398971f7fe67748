//! Derives from a cluster's specification the addresses of its connections, and how to dial them.

use std::borrow::Cow;
use std::sync::Arc;

use api::secret::{ClusterEndpoint, ClusterSpec, ConstEndpoint, Endpoint, ProxyScheme, ProxyUrl, Scheme, Trust};
use http::HeaderValue;
use http::uri::Authority;
use net::proxy::{Credentials, Protocol, Proxy};
use net::tls::client;
use net::tls::keypair::KeyPair;
use rustls_pki_types::ServerName;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::ClusterError;
use super::common::Common;
use crate::holding::MemberAccounts;
use crate::metrics::ClusterMetrics;
use crate::tunnel;
use crate::upstream::addresses::{MemberAddress, MemberAddresses};
use crate::upstream::circuit::Circuit;
use crate::upstream::{Dialer, MAX_DIALS, Target};

/// Advice for clusters whose certificates have no public CA, which is nearly all.
const NO_CA: &str = " (no CA is registered for it, so the system's roots were used: store the member's CA under the Secret's key \"ca.crt\", or set \"insecure-skip-tls-verify\" to \"true\")";

/// A cluster's endpoint. Behind the tunnel, the one that it has inside its own network.
pub(super) fn endpoint(spec: &ClusterSpec) -> Cow<'_, ConstEndpoint> {
    match &spec.endpoint {
        ClusterEndpoint::Const(fixed) => Cow::Borrowed(fixed),
        ClusterEndpoint::ClusterProxy => {
            let url = Endpoint {
                scheme: Scheme::Https,
                host: tunnel::HOST.to_owned(),
                port: tunnel::PORT,
                base_path: String::new(),
                authority: tunnel::HOST.to_owned(),
            };
            Cow::Owned(ConstEndpoint { url, proxy: None, fallbacks: Vec::new() })
        }
    }
}

/// The target of a cluster at `endpoint`; `identity` is our client certificate.
pub(super) fn target(
    spec: &ClusterSpec,
    endpoint: &ConstEndpoint,
    identity: Option<&KeyPair>,
    common: &Common,
    metrics: &Arc<ClusterMetrics>,
    ended: &CancellationToken,
) -> Result<Target, ClusterError> {
    let url = &endpoint.url;
    let name = spec.tls_server_name.as_deref();
    let first = address(url, &spec.trust, name, identity)?;
    let others = endpoint.fallbacks.iter().map(|(url, trust)| address(url, trust, name, identity));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    let authority = Authority::try_from(url.authority.as_str()).map_err(|_| ClusterError::Endpoint)?;
    Ok(Target {
        scheme: match url.scheme {
            Scheme::Https => http::uri::Scheme::HTTPS,
            Scheme::Http => http::uri::Scheme::HTTP,
        },
        host_header: HeaderValue::from_str(authority.as_str()).map_err(|_| ClusterError::Endpoint)?,
        authority,
        addresses: MemberAddresses::new(first, others),
        dialer: dialer(spec, endpoint, common, metrics)?,
        dial_timeout: common.dial_timeout,
        dials: Semaphore::new(MAX_DIALS),
        circuit: Circuit::new(common.circuit_failures, metrics.circuit()),
        accounts: MemberAccounts::new(common.budget.clone(), spec.name.clone()),
        ended: ended.clone(),
    })
}

fn dialer(
    spec: &ClusterSpec,
    endpoint: &ConstEndpoint,
    common: &Common,
    metrics: &Arc<ClusterMetrics>,
) -> Result<Dialer, ClusterError> {
    match (&spec.endpoint, &endpoint.proxy) {
        (ClusterEndpoint::ClusterProxy, _) => {
            let tunnel = common.tunnel.as_ref().ok_or(ClusterError::NoTunnel)?;
            tunnel.through(spec.name.as_str(), metrics).map(Dialer::Tunnel).ok_or(ClusterError::NoTunnel)
        }
        (ClusterEndpoint::Const(_), Some(url)) => proxy(url, common.proxy_ca.as_deref()).map(Dialer::Proxy),
        (ClusterEndpoint::Const(_), None) => Ok(Dialer::Direct),
    }
}

fn address(
    url: &Endpoint,
    trust: &Trust,
    name: Option<&str>,
    identity: Option<&KeyPair>,
) -> Result<MemberAddress, ClusterError> {
    let tls = match url.scheme {
        Scheme::Http => None,
        Scheme::Https => {
            let name = name.unwrap_or(&url.host);
            let name = ServerName::try_from(name.to_owned()).map_err(|_| ClusterError::ServerName(name.to_owned()))?;
            Some((client::config(to_verify(trust), identity)?, name))
        }
    };
    let advice = if *trust == Trust::SystemRoots { NO_CA } else { "" };
    Ok(MemberAddress { host: url.host.clone(), port: url.port, tls, advice })
}

fn to_verify(trust: &Trust) -> client::Trust<'_> {
    match trust {
        Trust::Bundle(pem) => client::Trust::Bundle(pem),
        Trust::SystemRoots => client::Trust::SystemRoots,
        Trust::Insecure => client::Trust::Insecure,
    }
}

fn proxy(url: &ProxyUrl, ca: Option<&[u8]>) -> Result<Proxy, ClusterError> {
    let protocol = match url.scheme {
        ProxyScheme::Http => Protocol::Http,
        ProxyScheme::Socks5 => Protocol::Socks5,
        ProxyScheme::Https => {
            let trust = ca.map_or(client::Trust::SystemRoots, client::Trust::Bundle);
            Protocol::Https(client::config(trust, None).map_err(ClusterError::ProxyTrust)?)
        }
    };
    let credentials = url
        .credentials
        .as_ref()
        .map(|credentials| Credentials { user: credentials.user.clone(), password: credentials.password.clone() });
    Ok(Proxy { protocol, host: url.host.clone(), port: url.port, credentials })
}
