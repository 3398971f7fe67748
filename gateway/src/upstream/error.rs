//! Why a member gave no answer.

use std::sync::Arc;

use super::connect::ConnectError;
use super::lost::Lost;
use crate::headers::size::Unfit;

/// Why a request got no response head.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Nothing of the request was sent.
    #[error(transparent)]
    Connect(#[from] Arc<ConnectError>),
    /// Nothing of the request was sent: all connections are in use and no more may be opened.
    #[error("all {0} connections to the member are in use")]
    Exhausted(usize),
    /// The member refused the request unprocessed.
    #[error("the member refused the request unprocessed, probably because it is shutting down")]
    Refused,
    /// The member, or the network, ended the exchange; it may have acted on the request.
    #[error("{0}")]
    Broken(#[source] Lost),
    /// The connection was ended for what it held; the member may have acted on the request.
    #[error(
        "the gateway holds too many bytes (--max-held-bytes), and this member's heads that it began and did not \
         finish, or its unread bytes in the tunnel, hold the most: it closed the connection"
    )]
    Shed,
    /// The head or the trailers of the request would endanger the streams of others. Nothing of
    /// them was sent.
    #[error("the request has {0}")]
    Unfit(Unfit),
    /// As that, of the answer.
    #[error("its head has {0}")]
    UnfitAnswer(Unfit),
    /// The client stopped sending its request body.
    #[error("the client disconnected while sending its request: {0}")]
    ClientGone(#[source] Lost),
}
