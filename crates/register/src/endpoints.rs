//! Which addresses clusters may have.

use std::net::IpAddr;

use api::secret::Endpoint;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;

use crate::Refused;

/// Segments of every path of the gateway on a hub: `/apis/GROUP/VERSION/RESOURCE/…`.
const GATEWAY: (&str, &str, &str) = ("apis", "cluster.core.oam.dev", "clustergateways");

/// What an operator says of addresses.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// No cluster is here. Names are for the gateway to judge, when they are resolved.
    pub denied: Vec<IpNet>,
    /// Where the gateway is, and its hub: a cluster there would be a way back to itself.
    pub own: Vec<Endpoint>,
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
        // IPv4 written as IPv6 (RFC 4291 §2.5.5.2) is dialled as IPv4.
        let address = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        let denied = |address: &IpAddr| self.denied.iter().any(|network| network.contains(address));
        if address.as_ref().is_some_and(denied) { Err(Refused::Denied(field)) } else { Ok(()) }
    }
}

/// Whether a base path is one of the gateway's, on whichever hub. API servers decode a path before
/// they look where it leads.
fn leads_through_gateway(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let segments: Vec<_> = decoded.split('/').filter(|segment| !segment.is_empty()).collect();
    let (apis, group, resource) = GATEWAY;
    segments.windows(4).any(|four| (four[0], four[1], four[3]) == (apis, group, resource))
}
