//! A member that the gateway dials: where, and what it verifies there.

use api::cluster_name::ClusterName;
use api::secret::{ClusterEndpoint, ClusterSecret, Endpoint, Trust};
use kube::config::Kubeconfig;

use crate::contexts;
use crate::own::trust;
use crate::trouble::{Result, Trouble};

/// How the gateway reaches a member without a tunnel.
pub struct Direct {
    pub endpoint: Endpoint,
    pub trust: Trust,
    /// In the certificate, where it is not the endpoint's host.
    pub server_name: Option<String>,
}

// === impl Direct ===

impl Direct {
    /// As the options or else the person's kubeconfig says.
    pub fn of(kubeconfig: &Kubeconfig, context: &str, url: Option<&str>, is_insecure: bool) -> Result<Self> {
        let (cluster, _) = contexts::parts(kubeconfig, contexts::named(kubeconfig, Some(context))?)?;
        let url = url.or(cluster.server.as_deref()).unwrap_or_default();
        // A port forward's or a local cluster's address says nothing of where the gateway is.
        let endpoint = Endpoint::parse(url, false).map_err(|error| {
            Trouble::usage(
                format!("{url:?} cannot be the member's endpoint: {error}"),
                "give another with --endpoint https://HOST:PORT",
            )
        })?;
        let trust = trust(cluster, is_insecure)?;
        Ok(Self { endpoint, trust, server_name: cluster.tls_server_name.clone() })
    }
}

/// The cluster is registered, and the gateway does not reach it.
pub fn unreached(name: &ClusterName, secret: &ClusterSecret, trouble: Trouble) -> Trouble {
    let mut remedy = trouble.remedy.clone();
    if let ClusterEndpoint::Const(fixed) = &secret.endpoint {
        if is_loopback(&fixed.url.host) {
            remedy = format!(
                "{} is this machine's own address: give the one that the gateway reaches with --endpoint",
                fixed.url
            );
        } else if secret.trust == Trust::SystemRoots && trouble.what.contains("certificate") {
            remedy = String::from("your kubeconfig has no CA for the member: add it, and run the same command again");
        }
    }
    let again = format!("then run the same command again, or `kubectl clusters detach {name}`");
    let remedy = if remedy.is_empty() { again } else { format!("{remedy}; {again}") };
    trouble.when(format!("{name} is registered, but the gateway could not use it")).remedied(remedy)
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}
