//! Errors of requests to members.

use std::sync::Arc;

use super::connect::ConnectError;
use super::lost::Lost;
use crate::headers::size::Unfit;
use crate::request_body::Interrupted;

/// Why there is no response head.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No part of the request was sent.
    #[error(transparent)]
    Connect(#[from] Arc<ConnectError>),
    /// No part of the request was sent: all connections are in use, and their number is at its
    /// limit.
    #[error("all {0} connections to the member are in use")]
    Exhausted(usize),
    /// The member refused the request without processing it.
    #[error("the member refused the request unprocessed, probably because it is shutting down")]
    Refused,
    /// The member or the network ended the exchange. The member may have acted on the request.
    #[error("{0}")]
    Broken(#[source] Lost),
    /// The connection ended because it held too many bytes. The member may have acted on the
    /// request.
    #[error(
        "the gateway reached --max-held-bytes and closed this member's connection, which held the most (unfinished \
         response heads or unread tunnel bytes)"
    )]
    Shed,
    /// The head or the trailers of the request would endanger other requests' streams, and were not
    /// sent.
    #[error("the request has {0}")]
    Unfit(Unfit),
    /// The same for the head of the response.
    #[error("its head has {0}")]
    UnfitAnswer(Unfit),
    /// The client stopped sending its request body.
    #[error("the client disconnected while sending its request: {0}")]
    ClientGone(#[source] Lost),
}

// === impl SendError ===

impl From<Interrupted> for SendError {
    fn from(interrupted: Interrupted) -> Self {
        match interrupted {
            Interrupted::Http1(gone) => Self::ClientGone(gone.into()),
            Interrupted::Http2(gone) => Self::ClientGone(gone.into()),
            Interrupted::Trailers(unfit) => Self::Unfit(unfit),
        }
    }
}
