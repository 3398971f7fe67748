//! Errors that ended an exchange with a member, or a connection to it.

use std::borrow::Cow;

use net::words::causes;

use super::shed::GaveWay;
use crate::request_body::Interrupted;

/// The body broke off in the middle. Passed on as an aborted stream, never as a clean end: a
/// truncated list must not look complete.
#[derive(Debug, thiserror::Error)]
#[error("the member's response was cut off: {0}")]
pub struct Truncated(#[source] pub Lost);

/// Why an exchange or a connection ended.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("{}", causes(.0))]
    Http2(#[from] h2::Error),
    #[error("{}", causes(.0))]
    Http1(#[from] hyper::Error),
    /// The gateway ended it, because the upload of the request broke off.
    #[error("the upload of the request broke off: {}", causes(.0))]
    Upload(#[source] Interrupted),
    /// The gateway ended it, because it held too many bytes.
    #[error(transparent)]
    GaveWay(#[from] GaveWay),
    /// The gateway ended it, or the member sent something invalid.
    #[error("{0}")]
    Ours(Cow<'static, str>),
}

// === impl Truncated ===

impl Truncated {
    /// The gateway gave up the exchange, because the upload of the request broke off.
    pub fn is_given_up(&self) -> bool {
        match &self.0 {
            Lost::Upload(_) => true,
            Lost::Http2(error) => error.is_reset() && !error.is_remote() && !error.is_library(),
            Lost::Http1(_) | Lost::GaveWay(_) | Lost::Ours(_) => false,
        }
    }
}

// === impl Lost ===

impl From<&'static str> for Lost {
    fn from(why: &'static str) -> Self {
        Self::Ours(why.into())
    }
}

impl From<String> for Lost {
    fn from(why: String) -> Self {
        Self::Ours(why.into())
    }
}
