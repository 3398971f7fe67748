//! Why a proxy opened no byte stream, with the remedy. No text contains a user or password.

use std::io;

use crate::dial::DialError;
use crate::words;

/// A failed dial through a proxy. The text begins with `dial tcp`, like those of all dials.
#[derive(Debug, thiserror::Error)]
#[error("dial tcp {destination}: through the proxy {proxy}: {refusal}")]
pub struct ProxyError {
    /// The `host:port` for which the proxy was asked.
    pub destination: String,
    /// Its URL, without credentials.
    pub proxy: String,
    pub refusal: Refusal,
}

/// The failure at the proxy.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("the proxy is unreachable: {0}")]
    Unreachable(DialError),
    #[error("TLS to the proxy: {}", words::io(.0))]
    Tls(io::Error),
    #[error("the proxy's host cannot be verified: it is not a DNS name or IP address")]
    Name,
    #[error("the proxy did not answer in time: i/o timeout")]
    Timeout,
    #[error("the proxy closed the connection instead of answering")]
    Closed,
    #[error("the connection to the proxy broke: {}", words::io(.0))]
    Broken(io::Error),
    #[error("the proxy requires a user and password: write them into the proxy's URL, http://USER:PASSWORD@HOST:PORT")]
    CredentialsWanted,
    #[error("the proxy does not accept the user and password in its URL: correct them there")]
    CredentialsRefused,
    #[error("the proxy refused to connect: {status} {reason}")]
    Status {
        status: u16,
        /// The proxy's own words, without control characters.
        reason: String,
    },
    #[error("the proxy refused to connect: {}", .0)]
    Socks(SocksReply),
    #[error("the proxy's answer is not {protocol} ({what}): check the scheme and port of its URL")]
    Malformed { protocol: &'static str, what: &'static str },
    #[error("the head of the proxy's answer is larger than {0} bytes")]
    TooLarge(usize),
}

/// A SOCKS5 reply other than success (RFC 1928 §6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{} (SOCKS reply {})", self.words(), self.0)]
pub struct SocksReply(pub u8);

// === impl ProxyError ===

impl ProxyError {
    /// Whether the cause was a timeout, not a refusal.
    pub fn is_timeout(&self) -> bool {
        match &self.refusal {
            Refusal::Timeout | Refusal::Status { status: 504, .. } => true,
            Refusal::Unreachable(error) => error.is_timeout(),
            _ => false,
        }
    }
}

// === impl Refusal ===

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::UnexpectedEof { Self::Closed } else { Self::Broken(error) }
    }
}

// === impl SocksReply ===

impl SocksReply {
    fn words(self) -> &'static str {
        match self.0 {
            1 => "general failure",
            2 => "not allowed by its rules",
            3 => "network unreachable",
            4 => "host unreachable or unknown",
            5 => "connection refused by the destination",
            6 => "time to live expired",
            7 => "it does not support CONNECT",
            8 => "it does not support this type of address",
            _ => "for an unknown reason",
        }
    }
}
