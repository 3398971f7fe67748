//! What an operator allows sources to say, and which addresses clusters may have.

use std::net::IpAddr;

use api::secret::{Endpoint, ExecConfig};
use ipnet::IpNet;
use percent_encoding::percent_decode_str;

use crate::Refused;

/// Segments of every path of the gateway on a hub: `/apis/GROUP/VERSION/RESOURCE/…`.
const GATEWAY: (&str, &str, &str) = ("apis", "cluster.core.oam.dev", "clustergateways");

/// Networks in which clusters are refused unless an operator allows it, separated by commas:
/// metadata servers of clouds, which give credentials to every client.
pub const DENIED: &str = "169.254.0.0/16,fe80::/10";

/// What an operator says of addresses.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// No cluster is here. Only addresses are judged, names are not resolved.
    pub denied: Vec<IpNet>,
    /// Where the gateway is: a cluster there would be a way back to itself. The hub is a cluster
    /// like any other; only paths through its gateway lead back.
    pub own: Vec<Endpoint>,
}

/// What an operator allows sources to say.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Programs that `exec` may name, as they are written there; words behind one, separated by
    /// spaces, are those that its arguments must begin with.
    pub exec_commands: Vec<String>,
    /// Variables that may be set for them.
    pub exec_env: Vec<String>,
    /// Whether clusters may be registered whose certificate is not verified.
    pub allow_insecure: bool,
    pub endpoints: Endpoints,
}

// === impl Rules ===

impl Rules {
    /// Refuses a program that is not listed, or one whose arguments begin otherwise: arguments
    /// decide what a program does, such as sending files somewhere.
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
    /// Judges the URL that `field` holds.
    pub fn check(&self, field: &'static str, endpoint: &Endpoint) -> Result<(), Refused> {
        self.check_host(field, &endpoint.host)?;
        let same = |own: &Endpoint| {
            (&own.host, own.port) == (&endpoint.host, endpoint.port) && endpoint.base_path.starts_with(&own.base_path)
        };
        if leads_through_gateway(&endpoint.base_path) || self.own.iter().any(same) {
            return Err(Refused::Loop(field));
        }
        Ok(())
    }

    /// Judges the host of the URL in `field`, which may be a name.
    pub fn check_host(&self, field: &'static str, host: &str) -> Result<(), Refused> {
        let Ok(address) = host.parse::<IpAddr>() else { return Ok(()) };
        let denied = |address: IpAddr| self.denied.iter().any(|network| network.contains(&address));
        // IPv4 written as IPv6 (RFC 4291 §2.5.5.2) is dialled as IPv4.
        if denied(address.to_canonical()) || embedded(address).is_some_and(denied) {
            return Err(Refused::Denied(field));
        }
        Ok(())
    }
}

/// The IPv4 address that a translator finds in an IPv6 one (RFC 6052 §2.1), or a host that still
/// knows the deprecated form (RFC 4291 §2.5.5.1).
fn embedded(address: IpAddr) -> Option<IpAddr> {
    let IpAddr::V6(address) = address else { return None };
    let [head @ .., a, b, c, d] = address.octets();
    let well_known = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
    (head == well_known || head == [0; 12]).then(|| [a, b, c, d].into())
}

/// Whether a base path is one of the gateway's, on whichever hub. API servers decode a path before
/// they look where it leads.
fn leads_through_gateway(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let segments: Vec<_> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    let (apis, group, resource) = GATEWAY;
    segments.windows(4).any(|four| (four[0], four[1], four[3]) == (apis, group, resource))
}
