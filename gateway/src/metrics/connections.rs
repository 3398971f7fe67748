//! Counts client connections that the gateway ended, by the limit that they reached.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// Why a client's connection was ended. Connections that give way for held bytes count elsewhere
/// (`cluster_gateway_sheds`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A newer connection took its place among the unauthenticated ones.
    Room,
    /// Timeouts of TLS, then of the HTTP/2 preface, then of the first head.
    Tls,
    Preface,
    FirstRequest,
    /// Timeout of the answer to a PING.
    Ping,
    /// HTTP/2 frames that are malformed, or more than any client needs.
    Frames,
    /// An HTTP/1.1 head that is too large or malformed.
    Head,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    reason: &'static str,
}

/// Cheap to clone.
#[derive(Clone)]
pub struct EndedConnections([Counter; ConnectionLimit::ALL.len()]);

// === impl ConnectionLimit ===

impl ConnectionLimit {
    const ALL: [Self; 7] =
        [Self::Room, Self::Tls, Self::Preface, Self::FirstRequest, Self::Ping, Self::Frames, Self::Head];

    fn reason(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Tls => "tls",
            Self::Preface => "preface",
            Self::FirstRequest => "first_request",
            Self::Ping => "ping",
            Self::Frames => "frames",
            Self::Head => "head",
        }
    }
}

// === impl EndedConnections ===

impl EndedConnections {
    /// Registers `cluster_gateway_client_connections_ended_total{reason}`.
    pub fn register(registry: &mut Registry) -> Self {
        let ended = Family::<Labels, Counter>::default();
        registry.register(
            "cluster_gateway_client_connections_ended",
            "Client connections that were ended at a limit, by limit",
            ended.clone(),
        );
        Self(ConnectionLimit::ALL.map(|limit| ended.get_or_create_owned(&Labels { reason: limit.reason() })))
    }

    pub fn count(&self, limit: ConnectionLimit) {
        self.0[limit as usize].inc();
    }
}
