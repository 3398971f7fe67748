//! Errors of connecting to a member, in words that clients of the Go cluster-gateway search for.

use std::io;
use std::time::Duration;

use net::dial::DialError;
use net::proxy::ProxyError;
use net::words;

use crate::tunnel::TunnelError;
use crate::upstream::Lost;
use crate::upstream::circuit::CircuitOpen;

/// Why there is no connection. Texts start with `dial tcp`.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("dial tcp {address}: {source}")]
    Tunnel { address: String, source: TunnelError },
    /// `advice` is empty, or continues the error.
    #[error("dial tcp {address}: tls: {}{advice}", words::io(.source))]
    Tls { address: String, source: io::Error, advice: &'static str },
    #[error("dial tcp {address}: tls: handshake timeout after {after:?}")]
    TlsTimeout { address: String, after: Duration },
    #[error("dial tcp {address}: the member does not support HTTP/1.1, which upgrades need")]
    NoHttp1 { address: String },
    #[error("dial tcp {address}: http2: {source}")]
    Http2 { address: String, source: Lost },
    #[error("dial tcp {address}: the member allows no request at all (SETTINGS_MAX_CONCURRENT_STREAMS is 0)")]
    NoStreams { address: String },
    #[error("dial tcp {address}: {limit} connections are open already")]
    Exhausted { address: String, limit: usize },
    /// No dial was tried.
    #[error(transparent)]
    CircuitOpen(#[from] CircuitOpen),
    /// The cluster was removed meanwhile. No part of the request was sent.
    #[error("dial tcp {address}: the cluster is no longer registered")]
    Unregistered { address: String },
    /// None of several addresses answered.
    #[error("{}", join(.0))]
    Nowhere(Vec<Self>),
}

/// The properties of a failure.
#[expect(clippy::struct_excessive_bools, reason = "each is asked for by itself")]
struct Meaning {
    kind: &'static str,
    is_timeout: bool,
    is_of_the_member: bool,
    is_of_the_tunnel: bool,
    is_momentary: bool,
    is_for_upgrades_only: bool,
}

// === impl ConnectError ===

impl ConnectError {
    /// Merges the failures of all addresses.
    pub(super) fn all_of(mut failures: Vec<Self>) -> Self {
        match failures.len() {
            1 => failures.remove(0),
            _ => Self::Nowhere(failures),
        }
    }

    /// Whether an address failed only for upgrades.
    pub(super) fn is_for_upgrades_only(&self) -> bool {
        self.meaning().is_for_upgrades_only
    }

    /// Whether the failure shows something about the member, and not about the tunnel.
    pub fn is_of_the_member(&self) -> bool {
        self.meaning().is_of_the_member
    }

    /// Whether the way to the member failed, and not the member: the operator must look at the
    /// tunnel's programs.
    pub fn is_of_the_tunnel(&self) -> bool {
        self.meaning().is_of_the_tunnel
    }

    /// Whether the same request may soon succeed.
    pub fn is_momentary(&self) -> bool {
        self.meaning().is_momentary
    }

    pub fn is_timeout(&self) -> bool {
        self.meaning().is_timeout
    }

    /// The value of the metric's label.
    pub fn kind(&self) -> &'static str {
        self.meaning().kind
    }

    fn meaning(&self) -> Meaning {
        match self {
            Self::Dial(DialError::Resolve { .. } | DialError::NoAddress { .. }) => Meaning::of_the_member("dns"),
            Self::Dial(error) if error.is_timeout() => Meaning::timeout(),
            Self::Dial(_) => Meaning::of_the_member("refused"),
            Self::Proxy(error) if error.is_timeout() => Meaning::timeout(),
            Self::Proxy(_) => Meaning::of_the_member("proxy"),
            Self::Tunnel { source, .. } => Meaning {
                kind: if source.is_timeout() { "timeout" } else { "tunnel" },
                is_timeout: source.is_timeout(),
                is_of_the_member: source.is_of_the_member(),
                is_of_the_tunnel: !source.is_beyond_the_tunnel(),
                is_momentary: source.is_momentary(),
                is_for_upgrades_only: false,
            },
            Self::Tls { .. } => Meaning::of_the_member("tls"),
            Self::TlsTimeout { .. } => Meaning::timeout(),
            Self::NoHttp1 { .. } => Meaning { is_for_upgrades_only: true, ..Meaning::of_the_member("protocol") },
            Self::Http2 { .. } | Self::NoStreams { .. } => Meaning::of_the_member("protocol"),
            Self::Exhausted { .. } => Meaning::of_the_member("exhausted"),
            Self::CircuitOpen(_) => Meaning::of_the_member("circuit"),
            Self::Unregistered { .. } => Meaning::plain("unregistered"),
            Self::Nowhere(failures) => Meaning::of_all(&failures.iter().map(Self::meaning).collect::<Vec<_>>()),
        }
    }
}

// === impl Meaning ===

impl Meaning {
    fn plain(kind: &'static str) -> Self {
        Self {
            kind,
            is_timeout: false,
            is_of_the_member: false,
            is_of_the_tunnel: false,
            is_momentary: false,
            is_for_upgrades_only: false,
        }
    }

    fn of_the_member(kind: &'static str) -> Self {
        Self { is_of_the_member: true, ..Self::plain(kind) }
    }

    fn timeout() -> Self {
        Self { is_timeout: true, ..Self::of_the_member("timeout") }
    }

    /// The properties of the failures of several addresses.
    fn of_all(all: &[Self]) -> Self {
        Self {
            kind: all.last().map_or("refused", |last| last.kind),
            is_timeout: all.iter().all(|one| one.is_timeout),
            is_of_the_member: all.iter().any(|one| one.is_of_the_member),
            is_of_the_tunnel: all.iter().all(|one| one.is_of_the_tunnel),
            is_momentary: all.iter().any(|one| one.is_momentary),
            is_for_upgrades_only: all.iter().any(|one| one.is_for_upgrades_only),
        }
    }
}

fn join(failures: &[ConnectError]) -> String {
    failures.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use tunnel::{Hop, Reason, Refusal};

    use super::*;
    use crate::tunnel::error::Cause;

    fn refused(hop: Hop, reason: Reason) -> ConnectError {
        let source = Cause::Refused(Refusal::new(hop, reason, "why".to_owned())).into();
        ConnectError::Tunnel { address: "192.0.2.7:6443".into(), source }
    }

    /// A member with several addresses must not look broken when only the tunnel is: its circuit
    /// would refuse requests even after the tunnel is back.
    #[test]
    fn several_addresses_fail_on_the_side_where_each_of_them_failed() {
        let told = |failures: Vec<ConnectError>| {
            let error = ConnectError::all_of(failures);
            (error.is_of_the_tunnel(), error.is_of_the_member(), error.is_momentary())
        };
        let [draining, unlinked] = [Reason::Draining, Reason::NoLink].map(|reason| refused(Hop::Server, reason));
        assert_eq!(told(vec![draining, unlinked]), (true, false, true));
        let [unreachable, unlinked] =
            [(Hop::Agent, Reason::Unreachable), (Hop::Server, Reason::NoLink)].map(|(hop, why)| refused(hop, why));
        assert_eq!(told(vec![unreachable, unlinked]), (false, true, false));
    }
}
