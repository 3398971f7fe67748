//! A member that the gateway dials: its address, and how the gateway verifies it.

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
    /// Name in the certificate, if it is not the endpoint's host.
    pub server_name: Option<String>,
}

// === impl Direct ===

impl Direct {
    /// From the options, or else from the person's kubeconfig.
    pub fn of(kubeconfig: &Kubeconfig, context: &str, url: Option<&str>, is_insecure: bool) -> Result<Self> {
        let (cluster, _) = contexts::parts(kubeconfig, contexts::named(kubeconfig, Some(context))?)?;
        let endpoint = parsed(url.or(cluster.server.as_deref()).unwrap_or_default())?;
        // The address of a port-forward or of a local cluster says nothing about how the gateway
        // reaches it.
        if url.is_none() && is_local(&endpoint.host) {
            return Err(Trouble::usage(
                format!("{endpoint} is this machine's own address: the gateway would dial its own machine"),
                format!("{ELSEWHERE} (of a cluster of kind: https://NAME-control-plane:6443)"),
            ));
        }
        let trust = trust(cluster, is_insecure)?;
        Ok(Self { endpoint, trust, server_name: cluster.tls_server_name.clone() })
    }
}

/// What to do about an address that only this machine can use.
const ELSEWHERE: &str = "give an address that the gateway can reach, with --endpoint https://HOST:PORT";

fn parsed(url: &str) -> Result<Endpoint> {
    Endpoint::parse(url, false).map_err(|error| {
        Trouble::usage(
            format!("{url:?} cannot be the member's endpoint: {error}"),
            "give another with --endpoint https://HOST:PORT",
        )
    })
}

/// The trouble that the cluster is registered, but the gateway does not reach it.
pub fn unreached(name: &ClusterName, secret: &ClusterSecret, trouble: Trouble) -> Trouble {
    let mut remedy = trouble.remedy.clone();
    if let ClusterEndpoint::Const(fixed) = &secret.endpoint {
        if is_local(&fixed.url.host) {
            remedy = format!("{} is this machine's own address: {ELSEWHERE}", fixed.url);
        } else if secret.trust == Trust::SystemRoots && trouble.what.contains("certificate") {
            remedy = String::from("your kubeconfig has no CA for the member: add it, and run the same command again");
        }
    }
    let again = format!("then run the same command again, or `kubectl clusters detach {name}`");
    let remedy = if remedy.is_empty() { again } else { format!("{remedy}; {again}") };
    trouble.when(format!("{name} is registered, but the gateway could not use it")).remedied(remedy)
}

/// Whether the host leads to the member only from this machine. k3d writes `0.0.0.0`, Docker
/// Desktop writes `kubernetes.docker.internal`.
fn is_local(host: &str) -> bool {
    let names = ["localhost", "kubernetes.docker.internal"];
    names.contains(&host)
        || host.ends_with(".localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback() || address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: &str, url: Option<&str>) -> Result<Direct> {
        let kubeconfig = format!(
            r#"{{"contexts": [{{"name": "c", "context": {{"cluster": "c"}}}}],
                "clusters": [{{"name": "c", "cluster": {{"server": "{server}"}}}}]}}"#
        );
        Direct::of(&Kubeconfig::from_yaml(&kubeconfig).unwrap(), "c", url, false)
    }

    #[test]
    fn an_address_of_this_machine_is_nobodys_elsewhere() {
        for server in [
            "https://127.0.0.1:40123",
            "https://127.1.2.3",
            "https://[::1]:6443",
            "https://0.0.0.0:6550",
            "https://localhost:6443",
            "https://hub.localhost",
            "https://kubernetes.docker.internal:6443",
        ] {
            let trouble = of(server, None).map(drop).unwrap_err();
            assert!(trouble.exit == crate::trouble::Exit::Usage && trouble.remedy.contains("--endpoint"), "{trouble}");
            let direct = of(server, Some("https://berlin-control-plane:6443")).unwrap();
            assert_eq!(direct.endpoint.host, "berlin-control-plane");
            // An explicit endpoint is accepted: a gateway may run on this machine.
            assert!(of("https://10.0.0.7", Some(server)).is_ok(), "{server}");
        }
        assert!(of("https://10.0.0.7:6443", None).is_ok() && of("https://localhost.example", None).is_ok());
    }
}
