//! The destination of a stream: the authority of a `CONNECT`.

use std::fmt;
use std::net::Ipv6Addr;
use std::sync::Arc;

use net::dial::HostPort;

/// Longest host: RFC 1035 §2.3.4, without the root's dot.
const LONGEST_HOST: usize = 253;

/// `host:port` for the agent to dial (RFC 9110 §9.3.6). Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Destination {
    host: Arc<str>,
    port: u16,
}

/// Why an authority is not a destination. The answer is 400.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    #[error("the authority is empty: host:port is needed")]
    Empty,
    #[error("the authority has no port: host:port is needed")]
    NoPort,
    #[error("the port must be a number from 1 to 65535")]
    Port,
    #[error("the host is neither a DNS name nor an IP address (IPv6 in brackets)")]
    Host,
}

// === impl Destination ===

impl Destination {
    /// Checks host and port. IPv6 comes without brackets.
    pub fn new(host: &str, port: u16) -> Result<Self, DestinationError> {
        if port == 0 {
            return Err(DestinationError::Port);
        }
        let good = if host.contains(':') { host.parse::<Ipv6Addr>().is_ok() } else { is_name(host) };
        if good { Ok(Self { host: host.into(), port }) } else { Err(DestinationError::Host) }
    }

    /// Parses `host:port`, with IPv6 in brackets. No user information, no zone, nothing behind the
    /// port.
    pub fn parse(authority: &str) -> Result<Self, DestinationError> {
        if authority.is_empty() {
            return Err(DestinationError::Empty);
        }
        let (host, port) = if let Some(rest) = authority.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').ok_or(DestinationError::Host)?;
            if !host.contains(':') {
                return Err(DestinationError::Host);
            }
            (host, rest.strip_prefix(':').ok_or(DestinationError::NoPort)?)
        } else {
            let (host, port) = authority.rsplit_once(':').ok_or(DestinationError::NoPort)?;
            if host.contains(':') {
                return Err(DestinationError::Host);
            }
            (host, port)
        };
        // `u16::from_str` accepts a leading plus sign.
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(if port.is_empty() { DestinationError::NoPort } else { DestinationError::Port });
        }
        Self::new(host, port.parse().map_err(|_| DestinationError::Port)?)
    }

    /// DNS name or IP address, IPv6 without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Accepts underscores: they are not valid in host names, but in use.
fn is_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    (1..=LONGEST_HOST).contains(&host.len()) && host.split('.').all(label)
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HostPort { host: &self.host, port: self.port }.fmt(f)
    }
}

#[cfg(test)]
mod tests;
