//! Which destinations the agent connects to: its own API server, and those that the operator
//! allowed.
//!
//! The agent alone decides: servers and their clients have no influence. A name is resolved once,
//! here, and the agent dials the checked addresses (CVE-2020-8562). Loopback, link-local addresses
//! and metadata services of clouds need a rule about them: `0.0.0.0/0`, or a name whose owner lets
//! it point there, is not enough.

mod rule;
mod special;

use std::net::IpAddr;

use tunnel::{ClusterName, Destination};

pub use self::rule::Rule;

/// Names of the API server of the cluster that a pod runs in.
const IN_CLUSTER: [&str; 2] = ["kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
const HTTPS: u16 = 443;

/// The allow-list.
#[derive(Debug)]
pub struct Targets {
    cluster: ClusterName,
    api_server: Destination,
    rules: Vec<Rule>,
}

/// Where to dial for a destination that may be allowed, and which check its addresses must pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub destination: Destination,
    check: Check,
}

/// What may allow a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The API server is where the operator said, at any address.
    Any,
    /// A rule names the host.
    Named,
    /// No rule names the host, which anyone may control: its addresses must be allowed.
    Unnamed,
}

/// A destination that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the agent of cluster {cluster} does not allow {destination}{or}: to allow it, start the agent with --allow={destination}"
)]
pub struct NotAllowed {
    cluster: ClusterName,
    destination: Destination,
    /// The possible alternative cause.
    or: &'static str,
}

// === impl Candidate ===

impl Candidate {
    /// The check that its addresses must pass.
    pub fn check(&self) -> Check {
        self.check
    }
}

// === impl Targets ===

impl Targets {
    pub fn new(cluster: ClusterName, api_server: Destination, rules: Vec<Rule>) -> Self {
        Self { cluster, api_server, rules }
    }

    /// The decision before a name is resolved; names that no rule can allow are not looked up at
    /// all.
    pub fn candidate(&self, destination: &Destination) -> Result<Candidate, NotAllowed> {
        let host = canonical(destination.host());
        if self.is_api_server(&host, destination.port()) {
            return Ok(Candidate { destination: self.api_server.clone(), check: Check::Any });
        }
        let port = destination.port();
        let candidate = |check| Ok(Candidate { destination: destination.clone(), check });
        if self.rules.iter().any(|rule| rule.names(&host, port)) {
            return candidate(Check::Named);
        }
        let may_be_allowed = match host.parse::<IpAddr>() {
            Ok(address) => self.allows(address, &host, port, Check::Unnamed),
            Err(_) => self.rules.iter().any(|rule| rule.is_range_with(port)),
        };
        if may_be_allowed { candidate(Check::Unnamed) } else { Err(self.not_allowed(destination, "")) }
    }

    /// Whether `candidate` may be reached at `address`, which its name resolved to.
    pub fn permits(&self, candidate: &Candidate, address: IpAddr) -> bool {
        self.allows(address, &canonical(candidate.destination.host()), candidate.destination.port(), candidate.check)
    }

    /// The answer if `candidate`, requested as `destination`, may not be reached at any of its
    /// addresses. A name without a rule gets the same answer if it has no address: clients must not
    /// learn which names exist here.
    pub fn refusal(&self, candidate: &Candidate, destination: &Destination) -> NotAllowed {
        let is_name = candidate.destination.host().parse::<IpAddr>().is_err();
        let hidden = is_name && candidate.check == Check::Unnamed;
        self.not_allowed(destination, if hidden { ", or knows no such name" } else { "" })
    }

    fn not_allowed(&self, destination: &Destination, or: &'static str) -> NotAllowed {
        NotAllowed { cluster: self.cluster.clone(), destination: destination.clone(), or }
    }

    pub fn cluster(&self) -> &ClusterName {
        &self.cluster
    }

    fn is_api_server(&self, host: &str, port: u16) -> bool {
        host == self.cluster.as_str()
            || (port == HTTPS && IN_CLUSTER.contains(&host))
            || (port == self.api_server.port() && host == canonical(self.api_server.host()))
    }

    fn allows(&self, address: IpAddr, host: &str, port: u16, check: Check) -> bool {
        let address = address.to_canonical();
        match (check, special::range_of(address)) {
            (Check::Any, _) | (Check::Named, None) => true,
            // The name means this machine: a rule with it covers loopback.
            (Check::Named, Some(_)) if host == "localhost" && address.is_loopback() => true,
            (Check::Unnamed, None) => self.rules.iter().any(|rule| rule.holds(address, port)),
            (Check::Named | Check::Unnamed, Some(range)) => {
                self.rules.iter().any(|rule| rule.holds(address, port) && rule.is_within(&range))
            }
        }
    }
}

/// Whether `host` is a name of the API server of the cluster that a pod runs in.
pub(crate) fn is_in_cluster(host: &str) -> bool {
    IN_CLUSTER.contains(&&*canonical(host))
}

/// Names compare without case and without the root's dot.
fn canonical(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
