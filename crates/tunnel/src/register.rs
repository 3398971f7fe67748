//! The registration of an agent: one HTTP/1.1 `Upgrade` request, answered 101 or with the reason
//! for a refusal.
//!
//! Heads are parsed strictly: CRLF, HTTP/1.1, no folding, no body, no relevant header twice. After
//! one answer, the connection is either a link or closed.

mod agent;
mod head;
mod server;

use std::io;
use std::time::Duration;

use http::StatusCode;
use http::status::InvalidStatusCode;
use net::words;

pub use self::agent::register;
pub use self::server::{Applicant, applicant};
use crate::{ClusterName, ClusterNameError};
use net::prefixed::Prefixed;

/// Path of the registration.
pub const PATH: &str = "/tunnel/v1/links";
/// Token of the `Upgrade` header.
pub const PROTOCOL: &str = "cluster-tunnel/1";
/// The registered cluster.
const CLUSTER: &str = "tunnel-cluster";
const AGENT: &str = "tunnel-agent";
const LINK: &str = "tunnel-link";
const VERSION: &str = "tunnel-version";
/// The server that answered.
const SERVER: &str = "tunnel-server";
/// For the specification's test.
#[cfg(test)]
pub(crate) const HEADERS: [&str; 5] = [CLUSTER, AGENT, LINK, VERSION, SERVER];
#[cfg(test)]
pub(crate) const LIMITS: (usize, usize) = (head::LONGEST, head::MOST_HEADERS);
/// Longest name of a process, and longest version.
const LONGEST_NAME: usize = 64;

/// What an agent says of itself. None of it is trusted before the credential is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// `Tunnel-Cluster`.
    pub cluster: ClusterName,
    /// `Tunnel-Agent`: names the agent's process, chosen by it at its start; 1 to 64 of
    /// `[A-Za-z0-9._-]`.
    pub agent: String,
    /// `Tunnel-Link`: number of the link within the process and server; a new link with the same
    /// number replaces the old one.
    pub link: u16,
    /// `Tunnel-Version`, for the listing: 1 to 64 visible characters of ASCII.
    pub version: String,
}

/// A connection after its upgrade: bytes read beyond the head come first.
pub type Upgraded<T> = Prefixed<T>;

/// The server's 101.
#[derive(Debug)]
pub struct Registered<T> {
    pub io: Upgraded<T>,
    /// `Tunnel-Server`: names the server's process, so that an agent can tell two links to one
    /// server from links to two servers.
    pub server: String,
}

/// Why the agent is not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The server's answer; `message` is its text, bounded and without control characters.
    /// `retry_after` if the server sent it.
    #[error("the server answered {status}: {message}")]
    Refused { status: StatusCode, message: String, retry_after: Option<Duration> },
    #[error("not an answer to a registration: {0}")]
    Malformed(#[from] Malformed),
    /// A value does not fit into a header; nothing was sent.
    #[error("cannot be sent: {0}")]
    Unfit(&'static str),
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    #[error("{}", words::io(.0))]
    Io(#[from] io::Error),
}

/// Why an answer is malformed.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    #[error(transparent)]
    Http(#[from] httparse::Error),
    #[error(transparent)]
    Status(#[from] InvalidStatusCode),
    /// No tunnel-server answers like this.
    #[error("{0}")]
    Unexpected(String),
}

/// Why a connection to the agents' listener is not a registration. It has been answered where that
/// was possible.
#[derive(Debug, thiserror::Error)]
pub enum ApplicationError {
    #[error("not a registration: {0}")]
    Malformed(String),
    #[error(transparent)]
    Cluster(#[from] ClusterNameError),
    #[error("no request within {0:?}")]
    Timeout(Duration),
    #[error("{}", words::io(.0))]
    Io(#[from] io::Error),
}

/// Names of processes: they go to logs and listings.
fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

fn is_version(version: &str) -> bool {
    (1..=LONGEST_NAME).contains(&version.len()) && version.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
