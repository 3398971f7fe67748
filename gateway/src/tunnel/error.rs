//! Why the tunnel opened no stream: the hop that failed, the reason, and the remedy.
//!
//! The member received nothing in any of these cases. The texts follow `dial tcp <place>: ` and the
//! cluster's name.

mod missing;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use net::words::Causes;
use tunnel::{Hop, Reason, Refusal};

use super::link::Unlinked;

pub use self::missing::Missing;

/// A stream that could not be opened.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct TunnelError(Box<Cause>);

/// The hop that failed.
#[derive(Debug)]
pub enum Cause {
    /// None of the servers that were asked has the cluster.
    Missing(Missing),
    /// A server has the cluster, but a later hop refused the stream.
    Refused(Refusal),
}

/// A tunnel-server that could not be asked, or did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    #[error(transparent)]
    Unlinked(Arc<Unlinked>),
    /// The link ended, twice.
    #[error("tunnel-server {0}: {1}")]
    Lost(SocketAddr, #[source] Causes),
    #[error("tunnel-server {address}: no answer: i/o timeout")]
    Silent {
        address: SocketAddr,
        /// The server was asked over a link, so a hop behind it may be the silent one.
        linked: bool,
    },
}

// === impl Cause ===

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refusal = match self {
            Self::Missing(missing) => return missing.fmt(f),
            Self::Refused(refusal) => refusal,
        };
        match refusal.reason {
            Reason::Lookup | Reason::Unreachable => write!(
                f,
                "the tunnel-agent is linked, but cannot connect to its API server: {refusal}: check the agent's --api-server"
            ),
            Reason::DialTimeout => write!(
                f,
                "the tunnel-agent is linked, but its API server does not answer: {refusal}{}: check the agent's --api-server",
                io_timeout(refusal)
            ),
            Reason::AgentTimeout => {
                write!(f, "the tunnel-agent is linked, but did not answer in time: {refusal}{}", io_timeout(refusal))
            }
            Reason::Forbidden if refusal.hop == Hop::Agent => {
                write!(f, "the tunnel-agent refused: {refusal}: check the agent's --allow")
            }
            Reason::Forbidden => {
                write!(f, "the tunnel-server refused this gateway: {refusal}: check --proxy-cert and --proxy-key")
            }
            Reason::Malformed | Reason::UnknownCluster | Reason::Limit | Reason::NoLink | Reason::Draining => {
                write!(f, "the tunnel-{} refused: {refusal}", refusal.hop)
            }
        }
    }
}

// No source: a text may have the errors of several servers.
impl std::error::Error for Cause {}

/// The words by which clients recognize a timeout, unless `refusal` contains them already, as for a
/// timeout of the agent's dial.
fn io_timeout(refusal: &Refusal) -> &'static str {
    if refusal.message.contains("i/o timeout") { "" } else { ": i/o timeout" }
}

// === impl TunnelError ===

impl From<Cause> for TunnelError {
    fn from(cause: Cause) -> Self {
        Self(Box::new(cause))
    }
}

impl From<Missing> for TunnelError {
    fn from(missing: Missing) -> Self {
        Cause::Missing(missing).into()
    }
}

impl TunnelError {
    pub fn is_timeout(&self) -> bool {
        match &*self.0 {
            Cause::Missing(missing) => missing.is_timeout(),
            Cause::Refused(refusal) => matches!(refusal.reason, Reason::DialTimeout | Reason::AgentTimeout),
        }
    }

    /// Whether the same request may soon succeed: a server has the cluster, but no room now; or no
    /// server has it, but one had a moment ago, so that an agent is likely to link again soon.
    pub fn is_momentary(&self) -> bool {
        match self.reason() {
            Some(Reason::Limit | Reason::Draining) => true,
            Some(Reason::UnknownCluster | Reason::NoLink) => {
                matches!(&*self.0, Cause::Missing(missing) if missing.was_reached)
            }
            Some(
                Reason::Malformed
                | Reason::Forbidden
                | Reason::Lookup
                | Reason::Unreachable
                | Reason::DialTimeout
                | Reason::AgentTimeout,
            )
            | None => false,
        }
    }

    /// Whether the failure shows something about the member. A missing agent or tunnel-server shows
    /// nothing about it: each request can find that out cheaply, and it is over once there is a
    /// link.
    pub fn is_of_the_member(&self) -> bool {
        match &*self.0 {
            Cause::Refused(refusal) => refusal.hop == Hop::Agent || refusal.reason == Reason::AgentTimeout,
            Cause::Missing(_) => false,
        }
    }

    /// Whether the tunnel worked, but its agent could not reach the API server.
    pub fn is_beyond_the_tunnel(&self) -> bool {
        match self.reason() {
            Some(Reason::Lookup | Reason::Unreachable | Reason::DialTimeout) => true,
            Some(
                Reason::Malformed
                | Reason::Forbidden
                | Reason::UnknownCluster
                | Reason::Limit
                | Reason::NoLink
                | Reason::Draining
                | Reason::AgentTimeout,
            )
            | None => false,
        }
    }

    /// The hop that failed: `server`, `agent`, or `gateway` if no tunnel-server could be reached.
    pub fn hop(&self) -> &'static str {
        match &*self.0 {
            Cause::Refused(refusal) => refusal.hop.as_str(),
            Cause::Missing(missing) => missing.foremost().map_or("gateway", |refusal| refusal.hop.as_str()),
        }
    }

    /// The value of the metric's label.
    pub fn outcome(&self) -> &'static str {
        match &*self.0 {
            Cause::Missing(missing) if missing.is_timeout() => "timeout",
            Cause::Missing(_) | Cause::Refused(_) => self.reason().map_or("no-server", Reason::as_str),
        }
    }

    /// A short fixed text without names and addresses.
    pub fn in_short(&self) -> &'static str {
        match self.reason() {
            None => "no tunnel-server is reached",
            Some(Reason::UnknownCluster | Reason::NoLink) => "no tunnel-agent is linked",
            Some(Reason::Limit | Reason::Draining) => "the tunnel accepts no more streams",
            Some(Reason::Lookup | Reason::Unreachable) => "the tunnel-agent cannot connect",
            Some(Reason::Forbidden | Reason::Malformed) => "the tunnel refuses",
            Some(Reason::DialTimeout | Reason::AgentTimeout) => "timeout",
        }
    }

    fn reason(&self) -> Option<Reason> {
        match &*self.0 {
            Cause::Missing(missing) => missing.foremost().map(|refusal| refusal.reason),
            Cause::Refused(refusal) => Some(refusal.reason),
        }
    }
}

// === impl Unreachable ===

impl Unreachable {
    fn is_timeout(&self) -> bool {
        match self {
            Self::Unlinked(unlinked) => unlinked.is_timeout(),
            Self::Silent { .. } => true,
            Self::Lost(..) => false,
        }
    }
}

#[cfg(test)]
pub mod tests;
