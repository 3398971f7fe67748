//! Opening TCP connections to members: resolve once, try each address, give up after a named time.

use std::fmt;
use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Probes start after this much silence: a member that vanished without a FIN is noticed even by an idle watch
/// (the value Go's `net.Dialer` uses by default in kube components is 30 s too).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// A place as messages and proxies spell it: `host:port`, IPv6 in brackets.
#[derive(Debug, Clone, Copy)]
pub struct HostPort<'a> {
    /// DNS name or IP address, IPv6 without brackets.
    pub host: &'a str,
    pub port: u16,
}

/// Why no TCP connection came about. The texts begin with `dial tcp`, which clients of the Go cluster-gateway look for.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    #[error("dial tcp: lookup {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("dial tcp: lookup {host}: no addresses")]
    NoAddress { host: String },
    #[error("dial tcp {address}: connect: {source}")]
    Connect { address: String, source: io::Error },
    #[error("dial tcp {address}: i/o timeout")]
    Timeout { address: String },
}

/// Connects to `host:port` before `deadline`.
///
/// The name is resolved once and only the resolved addresses are dialled, one after the other, so that a check made on an
/// address holds for the connection (CVE-2020-8562).
pub async fn connect(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, DialError> {
    let named = || format!("{host}:{port}");
    let addresses = timeout_at(deadline, tokio::net::lookup_host((host, port)))
        .await
        .map_err(|_| DialError::Timeout { address: named() })?
        .map_err(|source| DialError::Resolve { host: host.to_owned(), source })?;
    let mut last = DialError::NoAddress { host: host.to_owned() };
    for address in addresses {
        match timeout_at(deadline, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                tune(&stream);
                return Ok(stream);
            }
            Ok(Err(source)) => last = DialError::Connect { address: address.to_string(), source },
            Err(_) => return Err(DialError::Timeout { address: address.to_string() }),
        }
    }
    Err(last)
}

/// Sets what every connection here wants: no Nagle delay and keepalive probes. A socket that refuses an option still
/// works, so failures are not errors.
pub fn tune(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive =
        TcpKeepalive::new().with_time(KEEPALIVE_IDLE).with_interval(KEEPALIVE_INTERVAL).with_retries(KEEPALIVE_PROBES);
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

// === impl HostPort ===

impl fmt::Display for HostPort<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

// === impl DialError ===

impl DialError {
    /// Whether the cause was time, not a refusal.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::Timeout { .. } => true,
            Self::Connect { source, .. } => source.kind() == io::ErrorKind::TimedOut,
            Self::Resolve { .. } | Self::NoAddress { .. } => false,
        }
    }
}
