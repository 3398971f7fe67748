//! Why a member gave no connection, in words that clients of the Go cluster-gateway look for.

use std::io;
use std::time::Duration;

use net::dial::DialError;
use net::proxy::ProxyError;
use net::words;

use crate::tunnel::TunnelError;
use crate::upstream::Lost;
use crate::upstream::circuit::CircuitOpen;

/// Why no connection came about. Texts start with `dial tcp`.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    #[error("dial tcp {address}: {source}")]
    Tunnel { address: String, source: TunnelError },
    /// `advice` is empty or follows the error.
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
    /// Nothing was tried.
    #[error(transparent)]
    CircuitOpen(#[from] CircuitOpen),
    /// The cluster was removed meanwhile: nothing of the request was sent.
    #[error("dial tcp {address}: the cluster is no longer registered")]
    Unregistered { address: String },
    /// Several addresses, none of which answered.
    #[error("{}", join(.0))]
    Nowhere(Vec<Self>),
}

// === impl ConnectError ===

impl ConnectError {
    /// The failures of all addresses as one.
    pub(super) fn all_of(mut failures: Vec<Self>) -> Self {
        match failures.len() {
            1 => failures.remove(0),
            _ => Self::Nowhere(failures),
        }
    }

    /// Whether some address would have taken anything but an upgrade.
    pub(super) fn is_for_upgrades_only(&self) -> bool {
        match self {
            Self::NoHttp1 { .. } => true,
            Self::Nowhere(failures) => failures.iter().any(Self::is_for_upgrades_only),
            Self::Dial(_)
            | Self::Proxy(_)
            | Self::Tls { .. }
            | Self::TlsTimeout { .. }
            | Self::Tunnel { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. }
            | Self::CircuitOpen(_)
            | Self::Unregistered { .. } => false,
        }
    }

    /// Whether this says something of the member, and not of the tunnel on the way there.
    pub fn is_of_the_member(&self) -> bool {
        match self {
            Self::Tunnel { source, .. } => source.is_of_the_member(),
            Self::Nowhere(failures) => failures.iter().any(Self::is_of_the_member),
            Self::Unregistered { .. } => false,
            Self::Dial(_)
            | Self::Proxy(_)
            | Self::Tls { .. }
            | Self::TlsTimeout { .. }
            | Self::NoHttp1 { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. }
            | Self::CircuitOpen(_) => true,
        }
    }

    /// Whether the way there failed, and not the member: the tunnel's programs have to be looked
    /// at.
    pub fn is_of_the_tunnel(&self) -> bool {
        match self {
            Self::Tunnel { source, .. } => !source.is_beyond_the_tunnel(),
            Self::Nowhere(failures) => failures.iter().all(Self::is_of_the_tunnel),
            Self::Dial(_)
            | Self::Proxy(_)
            | Self::Tls { .. }
            | Self::TlsTimeout { .. }
            | Self::NoHttp1 { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. }
            | Self::CircuitOpen(_)
            | Self::Unregistered { .. } => false,
        }
    }

    /// Whether the same may well succeed in a moment.
    pub fn is_momentary(&self) -> bool {
        match self {
            Self::Tunnel { source, .. } => source.is_momentary(),
            Self::Nowhere(failures) => failures.iter().any(Self::is_momentary),
            Self::Dial(_)
            | Self::Proxy(_)
            | Self::Tls { .. }
            | Self::TlsTimeout { .. }
            | Self::NoHttp1 { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. }
            | Self::CircuitOpen(_)
            | Self::Unregistered { .. } => false,
        }
    }

    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Dial(error) => error.is_timeout(),
            Self::Proxy(error) => error.is_timeout(),
            Self::Tunnel { source, .. } => source.is_timeout(),
            Self::TlsTimeout { .. } => true,
            Self::Nowhere(failures) => failures.iter().all(Self::is_timeout),
            Self::Tls { .. }
            | Self::NoHttp1 { .. }
            | Self::Http2 { .. }
            | Self::NoStreams { .. }
            | Self::Exhausted { .. }
            | Self::CircuitOpen(_)
            | Self::Unregistered { .. } => false,
        }
    }

    /// A word for the metric's label.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Dial(DialError::Resolve { .. } | DialError::NoAddress { .. }) => "dns",
            Self::Dial(error) if error.is_timeout() => "timeout",
            Self::Dial(_) => "refused",
            Self::Proxy(error) if error.is_timeout() => "timeout",
            Self::Proxy(_) => "proxy",
            Self::Tunnel { source, .. } if source.is_timeout() => "timeout",
            Self::Tunnel { .. } => "tunnel",
            Self::Tls { .. } => "tls",
            Self::TlsTimeout { .. } => "timeout",
            Self::NoHttp1 { .. } | Self::Http2 { .. } | Self::NoStreams { .. } => "protocol",
            Self::Exhausted { .. } => "exhausted",
            Self::CircuitOpen(_) => "circuit",
            Self::Unregistered { .. } => "unregistered",
            Self::Nowhere(failures) => failures.last().map_or("refused", Self::kind),
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

    /// A member of several addresses must not look broken when only the tunnel is: its circuit
    /// would keep requests from it after the tunnel is back.
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
