//! Why a connection did not end cleanly, and at which limit.

use std::time::Duration;

use super::limits::Limits;
use crate::metrics::ConnectionLimit;

#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error(transparent)]
    Http1(#[from] hyper::Error),
    #[error(transparent)]
    Http2(#[from] h2::Error),
    #[error("pseudo-headers after other headers kept more than {} MiB of heads in memory", Limits::PINNED / (1024 * 1024))]
    PinnedHeads,
    /// [`crate::inbound`] refused it.
    #[error("{0}")]
    Refused(&'static str),
    #[error("no HTTP/2 preface within {0:?}")]
    NoPreface(Duration),
    #[error("no answer to a PING within {0:?}")]
    Silent(Duration),
    #[error("no request within {0:?}")]
    NoRequest(Duration),
    #[error("closed to make room before it was authenticated")]
    MadeRoom,
    #[error("the gateway reached --max-held-bytes, and this connection or its user held the most")]
    HeldTooMuch,
}

// === impl Ended ===

impl Ended {
    /// The limit at which the gateway ended the connection, if it did.
    pub(super) fn limit(&self) -> Option<ConnectionLimit> {
        match self {
            Self::Http1(error) => error.is_parse().then_some(ConnectionLimit::Head),
            Self::Http2(error) => error.is_library().then_some(ConnectionLimit::Frames),
            Self::PinnedHeads | Self::Refused(_) => Some(ConnectionLimit::Frames),
            Self::NoPreface(_) => Some(ConnectionLimit::Preface),
            Self::Silent(_) => Some(ConnectionLimit::Ping),
            Self::NoRequest(_) => Some(ConnectionLimit::FirstRequest),
            Self::MadeRoom => Some(ConnectionLimit::Room),
            Self::HeldTooMuch => None,
        }
    }
}
