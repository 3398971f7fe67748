//! What an operator lets sources specify, and the addresses that clusters may have.

use std::net::IpAddr;

use api::secret::{Endpoint, ExecConfig};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;

use crate::Refused;

/// Segments of every path of the gateway on a hub: `/apis/GROUP/VERSION/RESOURCE/…`.
const GATEWAY: (&str, &str, &str) = ("apis", "cluster.core.oam.dev", "clustergateways");
/// The same in Karmada's spelling. Another Karmada has such paths, too, but they do not lead to
/// this gateway.
const KARMADA: (&str, &str, &str) = ("apis", "cluster.karmada.io", "clusters");

/// Names of the API server of the cluster that a pod runs in.
const OWN_CLUSTER: [&str; 2] = ["https://kubernetes.default.svc", "https://kubernetes.default"];

/// Networks in which clusters are refused unless an operator allows it, separated by commas: the
/// metadata servers of clouds, which give credentials to every client.
pub const DENIED: &str = "169.254.0.0/16,fe80::/10";

/// The operator's rules for addresses.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// Networks without clusters. Only addresses are judged; names are not resolved.
    pub denied: Vec<IpNet>,
    /// The gateway's own addresses: a cluster there would be a loop.
    pub own: Vec<Endpoint>,
    /// The hub's addresses: a cluster like any other, except that paths through its gateway are a
    /// loop.
    pub hub: Vec<Endpoint>,
    /// The domain of the cluster that this program runs in, such as `cluster.local`. A Service of
    /// the same name in a cluster with another domain is not ours.
    pub domain: Option<String>,
}

/// What an operator lets sources specify.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Programs that `exec` may name, exactly as written. If words follow a program, separated by
    /// spaces, its arguments must begin with them.
    pub exec_commands: Vec<String>,
    /// Variables that sources may set for them.
    pub exec_env: Vec<String>,
    /// Whether clusters with an unverified certificate may be registered.
    pub allow_insecure: bool,
    pub endpoints: Endpoints,
}

/// Parses the URLs of the gateway's own servers, each with the flag that gave it. Errors go into
/// `wrong`.
pub fn own<'a>(given: impl IntoIterator<Item = (&'static str, &'a String)>, wrong: &mut Vec<String>) -> Vec<Endpoint> {
    let parse = |(flag, url): (_, &String)| {
        Endpoint::parse(url, false).map_err(|error| wrong.push(format!("{flag}: {error}"))).ok()
    };
    given.into_iter().filter_map(parse).collect()
}

// === impl Rules ===

impl Rules {
    /// Refuses a program that is not listed, or whose arguments begin differently: arguments decide
    /// what a program does, for example that it sends files somewhere.
    pub(crate) fn check_program(&self, exec: &ExecConfig) -> Result<(), Refused> {
        let is_it = |listed: &String| {
            let (mut words, mut arguments) = (listed.split_ascii_whitespace(), exec.args.iter());
            words.next() == Some(exec.command.as_str())
                && words.all(|word| arguments.next().is_some_and(|argument| argument == word))
        };
        if self.exec_commands.iter().any(is_it) { Ok(()) } else { Err(Refused::ExecCommand) }
    }
}

// === impl Endpoints ===

impl Endpoints {
    /// Adds what a program learns from where it runs: the hub's URL, whether the hub is the cluster
    /// that it runs in, and that cluster's domain.
    pub fn know(&mut self, hub: &str, is_own_cluster: bool, domain: Option<String>) {
        let names: &[&str] = if is_own_cluster { &OWN_CLUSTER } else { &[] };
        let parse = |url: &str| Endpoint::parse(url, true).ok();
        self.hub = names.iter().filter_map(|url| parse(url)).chain(parse(hub)).collect();
        self.domain = domain;
    }

    /// Judges the URL that `field` holds.
    pub fn check(&self, field: &'static str, endpoint: &Endpoint) -> Result<(), Refused> {
        self.check_host(field, &endpoint.host)?;
        let host = self.without_domain(&endpoint.host);
        let is_there =
            |server: &Endpoint| server.port == endpoint.port && is_same(self.without_domain(&server.host), host);
        let same = |own: &Endpoint| is_there(own) && endpoint.base_path.starts_with(&own.base_path);
        let leads_back = leads_through(GATEWAY, &endpoint.base_path)
            || self.own.iter().any(same)
            || self.hub.iter().any(is_there) && leads_through(KARMADA, &endpoint.base_path);
        if leads_back { Err(Refused::Loop(field)) } else { Ok(()) }
    }

    /// The host, as `NAME.NAMESPACE.svc` where it is a Service in the cluster's domain.
    fn without_domain<'a>(&self, host: &'a str) -> &'a str {
        let domain = self.domain.as_deref().unwrap_or_default();
        let service = host.strip_suffix(domain).and_then(|rest| rest.strip_suffix('.'));
        service.filter(|rest| rest.split('.').next_back() == Some("svc")).unwrap_or(host)
    }

    /// Judges the host of the URL in `field`, which may be a name.
    pub fn check_host(&self, field: &'static str, host: &str) -> Result<(), Refused> {
        let Ok(address) = host.parse::<IpAddr>() else { return Ok(()) };
        let denied = |address: IpAddr| self.denied.iter().any(|network| network.contains(&address));
        // IPv4 addresses written as IPv6 (RFC 4291 §2.5.5.2) are dialled as IPv4.
        if denied(address.to_canonical()) || embedded(address).is_some_and(denied) {
            return Err(Refused::Denied(field));
        }
        Ok(())
    }
}

/// Whether two hosts, which may be names, are dialled alike: IPv4 written as IPv6 is IPv4, and a
/// translator leads to the one that it finds.
fn is_same(one: &str, other: &str) -> bool {
    let dialled = |address: IpAddr| embedded(address).unwrap_or_else(|| address.to_canonical());
    let address = |host: &str| host.parse::<IpAddr>().ok().map(dialled);
    one == other || address(one).is_some_and(|one| address(other) == Some(one))
}

/// The IPv4 address that a translator finds in an IPv6 one (RFC 6052 §2.1), or a host that still
/// knows the deprecated form (RFC 4291 §2.5.5.1).
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let [head @ .., a, b, c, d] = address.octets();
    let well_known = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
    (head == well_known || head == [0; 12]).then(|| [a, b, c, d].into())
}

/// Whether a base path goes through a resource. API servers decode a path before they route it.
fn leads_through((apis, group, resource): (&str, &str, &str), path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let segments: Vec<_> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    segments.windows(4).any(|four| (four[0], four[1], four[3]) == (apis, group, resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each spelling of a request for a member: where it is a loop, and where it is not.
    #[test]
    fn each_spelling_of_our_own_is_a_loop_and_none_of_others() {
        let endpoint = |url: &str| Endpoint::parse(url, false).unwrap();
        let own = ["gateway.example:9443", "gateway.example:9092", "10.96.0.7:9443", "door.ns.svc:9443"];
        let own = own.map(|host| endpoint(&format!("https://{host}"))).into();
        let mut endpoints = Endpoints { own, ..Endpoints::default() };
        endpoints.know("https://hub.example:6443", true, Some("corp.example".to_owned()));
        let native = "apis/cluster.core.oam.dev/v1alpha1/clustergateways/x/proxy";
        let karmada = "apis/cluster.karmada.io/v1alpha1/clusters/x/proxy";
        for (server, path, is_loop) in [
            ("hub.example:6443", "", false),
            ("hub.example:6443", native, true),
            ("hub.example:6443", karmada, true),
            ("HUB.example:6443", "base/apis/cluster.karmada.io/v1alpha1//cluster%73/x/proxy", true),
            // Not a path of the hub.
            ("hub.example:6443", "clusters/x", false),
            ("hub.example:6443", "apis/cluster.karmada.io/v1alpha1/others/x", false),
            ("hub.example", karmada, false),
            ("hub.example:9443", "", false),
            ("gateway.example:9443", karmada, true),
            ("gateway.example:9443", "clusters/x", true),
            ("gateway.example:9443", "", true),
            // The user server's port.
            ("gateway.example:9092", "x", true),
            ("gateway.example:6443", "x", false),
            ("10.96.0.7:9443", "clusters/x", true),
            ("[::ffff:10.96.0.7]:9443", "clusters/x", true),
            ("[::ffff:10.96.0.8]:9443", "clusters/x", false),
            ("[64:ff9b::10.96.0.7]:9443", "clusters/x", true),
            ("[::10.96.0.7]:9443", "clusters/x", true),
            ("[64:ff9b::10.96.0.8]:9443", "clusters/x", false),
            // Services, in the domain of the cluster that this program runs in.
            ("door.ns.svc.corp.example:9443", "clusters/x", true),
            ("DOOR.ns.svc.Corp.example:9443", "", true),
            ("door.ns.svc.corp.example:9444", "", false),
            ("door.other.svc.corp.example:9443", "", false),
            ("door.ns.corp.example:9443", "", false),
            ("door.ns.svc.another.example:9443", "clusters/x", false),
            ("kubernetes.default.svc", karmada, true),
            ("kubernetes.default.svc.corp.example:443", karmada, true),
            ("kubernetes.default", karmada, true),
            ("kubernetes.default.svc.corp.example", "", false),
            ("kubernetes.default.svc.another.example", karmada, false),
            // Somebody else's.
            ("karmada.example:5443", karmada, false),
            ("kcp.example:6443", "clusters/root:org:x", false),
            ("user-server.example:9092", "x", false),
            ("other.example:6443", native, true),
        ] {
            let found = endpoints.check("server", &endpoint(&format!("https://{server}/{path}")));
            assert_eq!(found.is_err(), is_loop, "{server} {path}: {found:?}");
        }
    }

    /// The API server of a pod's cluster is another's, if the hub is elsewhere.
    #[test]
    fn a_pods_own_cluster_is_not_the_hub_of_a_kubeconfig() {
        let mut endpoints = Endpoints::default();
        endpoints.know("https://hub.example:6443", false, None);
        let path = "apis/cluster.karmada.io/v1alpha1/clusters/x/proxy";
        let is_loop = |server: &str| {
            let endpoint = Endpoint::parse(&format!("https://{server}/{path}"), false).unwrap();
            endpoints.check("server", &endpoint).is_err()
        };
        assert!(is_loop("hub.example:6443") && !is_loop("kubernetes.default.svc"));
    }
}
