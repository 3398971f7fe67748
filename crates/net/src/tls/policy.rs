//! What a server accepts of TLS: the oldest version, the cipher suites, and the protocols inside.
//!
//! Cipher suites have the names of IANA and Go. As in Go's servers, only TLS 1.2 suites can be
//! chosen: those of TLS 1.3 are all good, and always available.

mod suites;

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};

use super::{H2, HTTP_11};

pub use self::suites::Suites;

/// See the module's text. The default is TLS 1.2 and 1.3, all suites, and HTTP/2 before HTTP/1.1.
#[derive(Debug, Clone)]
pub struct Policy {
    pub oldest: Version,
    pub suites: Suites,
    pub alpn: Vec<&'static [u8]>,
}

/// Versions that can be the oldest. TLS 1.0 and 1.1 are not implemented (RFC 8996 forbids them).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    Tls12,
    Tls13,
}

// === impl Policy ===

impl Default for Policy {
    fn default() -> Self {
        Self { oldest: Version::Tls12, suites: Suites::default(), alpn: vec![H2, HTTP_11] }
    }
}

impl Policy {
    /// The versions to offer. Omits one without a suite, because a handshake that agreed on it
    /// could not continue.
    pub(super) fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let oldest: &[_] = match self.oldest {
            Version::Tls12 => &[&TLS13, &TLS12],
            Version::Tls13 => &[&TLS13],
        };
        oldest.iter().copied().filter(|version| self.suites.0.iter().any(|suite| suite.version() == *version)).collect()
    }
}

#[cfg(test)]
mod tests;
