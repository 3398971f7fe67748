//! Client connections that the gateway ended, by the limit that they had reached.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// What a client's connection was ended for. Those that give way for the bytes that are held count
/// elsewhere (`cluster_gateway_sheds`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// A newer one has its place among those that are not authenticated.
    Room,
    /// Time for TLS, then for the HTTP/2 preface, then for the first head.
    Tls,
    Preface,
    FirstRequest,
    /// Time to answer a PING.
    Ping,
    /// HTTP/2 frames that are malformed, or more than any client needs.
    Frames,
    /// The size of an HTTP/1.1 head, or it is malformed.
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
