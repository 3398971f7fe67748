//! Identity of a link.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use tunnel::ClusterName;
use tunnel::register::Registration;

/// The agent that owns a link, for the log and for listings.
#[derive(Debug, Clone)]
pub struct Named {
    pub cluster: ClusterName,
    pub agent: Arc<str>,
    pub number: u16,
    pub version: Arc<str>,
    pub peer: SocketAddr,
    pub credential: Credential,
}

/// The credential that registered a link: the user's name on the hub, or the certificate's common
/// name. A new link replaces one with the same agent and number only if its credential is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential(pub Arc<str>);

// === impl Named ===

impl Named {
    pub fn new(registration: &Registration, peer: SocketAddr, credential: Credential) -> Self {
        Self {
            cluster: registration.cluster.clone(),
            agent: registration.agent.as_str().into(),
            number: registration.link,
            version: registration.version.as_str().into(),
            peer,
            credential,
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.cluster, self.agent, self.number)
    }
}
