//! Why a link ended, or opens no stream.

use std::time::Duration;

use net::words::Causes;

use crate::Refusal;
use crate::turn::FLOOD;

/// Why a link could not start, or ended.
#[derive(Debug, Clone, thiserror::Error)]
pub enum LinkError {
    #[error("no HTTP/2 SETTINGS within {0:?}")]
    HandshakeTimeout(Duration),
    #[error("nothing received for {0:?}")]
    Silent(Duration),
    /// The peer sent too many frames that are expensive, see [`net::costly`].
    #[error("{}", net::costly::TOO_MANY)]
    Flood,
    #[error("{0}")]
    Broken(#[source] Causes),
    /// The task panicked, or its runtime was shut down.
    #[error("its task was ended")]
    Aborted,
    #[error("closed")]
    Closed,
}

/// Why no stream was opened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OpenError {
    /// An answer other than 200.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The destination was not dialled: the link is leaving, has ended, or is full. Another may be
    /// tried.
    #[error("the link accepts no new streams: {0}")]
    NotSent(#[from] NotSent),
    /// The link ended while the stream was being opened: the destination may have been dialled.
    #[error("the link was lost while the stream was being opened: {0}")]
    Lost(#[source] Causes),
}

/// Why the destination was not dialled.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotSent {
    #[error("it is leaving")]
    Leaving,
    #[error("it has ended: {0}")]
    Ended(#[source] LinkError),
    /// The field is the link's limit.
    #[error("all of its {0} streams are in use")]
    Full(usize),
    /// HTTP/2 did not send the request, or the peer did not process it.
    #[error("{0}")]
    Failed(#[source] Causes),
}

pub(crate) fn broken(error: h2::Error) -> LinkError {
    match error.get_io() {
        Some(end) if end.kind() == FLOOD => LinkError::Flood,
        _ => LinkError::Broken(Causes::of(error)),
    }
}

pub(super) fn not_opened(error: h2::Error) -> OpenError {
    // RFC 9113 §8.7: a refused stream, and one beyond the last of a GOAWAY, was not processed.
    let refused = error.is_remote() && error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM);
    if refused || error.is_remote() && error.is_go_away() {
        NotSent::Failed(Causes::of(error)).into()
    } else {
        OpenError::Lost(Causes::of(error))
    }
}
