//! Errors of dials, in the words of Go's dialer, which clients and operators of clusters know.

use std::io;

use super::{HostPort, Tried};
use crate::words;

/// Why there is no TCP connection. The texts begin with `dial tcp`, which clients of the Go
/// cluster-gateway search for.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("dial tcp: lookup {host}: {}", lookup_words(.source))]
    Resolve { host: String, source: io::Error },
    #[error("dial tcp: lookup {host}: no addresses")]
    NoAddress { host: String },
    #[error("dial tcp {address}: connect: {}", words::io(.source))]
    Connect { address: String, source: io::Error },
    #[error("dial tcp {address}: i/o timeout")]
    Timeout { address: String },
    /// Of several addresses of `destination`, some did not answer in time, and none accepted.
    /// `tried` lists them.
    #[error("dial tcp {destination}: i/o timeout: {tried}")]
    Silence { destination: String, tried: String },
}

// === impl DialError ===

impl DialError {
    /// Whether the cause was a timeout, not a refusal.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::Silence { .. } => true,
            Self::Connect { source, .. } => source.kind() == io::ErrorKind::TimedOut,
            Self::Resolve { .. } | Self::NoAddress { .. } => false,
        }
    }

    /// Merges the failures of all addresses of `destination`: silence if some did not answer,
    /// otherwise the failure of the first, which the resolver preferred.
    pub(super) fn of_all(destination: HostPort<'_>, tried: Vec<Tried>) -> Self {
        if tried.iter().any(|tried| tried.failure.is_none()) {
            return Self::Silence { destination: destination.to_string(), tried: each(&tried) };
        }
        let first = tried.into_iter().find_map(|tried| Some((tried.address, tried.failure?)));
        match first {
            Some((address, source)) => Self::Connect { address: address.to_string(), source },
            None => Self::NoAddress { host: destination.host.to_owned() },
        }
    }
}

fn each(tried: &[Tried]) -> String {
    let told = tried.iter().map(|Tried { address, failure }| match failure {
        None => format!("no answer from {address}"),
        Some(error) => format!("{address}: {}", words::io(error)),
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Go's words for the resolver's error. The standard library only passes on the text of
/// `gai_strerror`.
fn lookup_words(error: &io::Error) -> String {
    let text = words::io(error);
    let unknown =
        ["Name or service not known", "No address associated with hostname", "nodename nor servname provided"];
    if unknown.iter().any(|unknown| text.contains(unknown)) {
        return "no such host".into();
    }
    text.trim_start_matches("failed to lookup address information: ").to_lowercase()
}
