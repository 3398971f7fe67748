//! Opens TCP connections: resolves once, races the addresses if there are several, and gives up at
//! a deadline.

mod error;
mod race;

use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

pub use self::error::DialError;
use self::race::{Tried, first_of, in_turns};

/// Probes start after this much silence, so that even an idle watch detects a member that vanished
/// without a FIN (Go's `net.Dialer` in kube components also uses 30 s by default).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// A destination as messages and proxies write it: `host:port`, IPv6 in brackets.
#[derive(Debug, Clone, Copy)]
pub struct HostPort<'a> {
    /// DNS name or IP address, IPv6 without brackets.
    pub host: &'a str,
    pub port: u16,
}

/// Connects to `host:port` before `deadline`.
///
/// Resolves the name once, and dials only the resolved addresses, like [`connect_to`].
pub async fn connect(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, DialError> {
    let addresses = resolve(host, port, deadline).await?;
    connect_to(HostPort { host, port }, addresses, deadline).await
}

/// The addresses of `host:port`, each once, in the resolver's order; at least one. The caller
/// decides how many to use, because that depends on the purpose.
pub async fn resolve(host: &str, port: u16, deadline: Instant) -> Result<Vec<SocketAddr>, DialError> {
    let found = timeout_at(deadline, tokio::net::lookup_host((host, port)))
        .await
        .map_err(|_| DialError::Timeout { address: HostPort { host, port }.to_string() })?
        .map_err(|source| DialError::Resolve { host: host.to_owned(), source })?;
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    if addresses.is_empty() { Err(DialError::NoAddress { host: host.to_owned() }) } else { Ok(addresses) }
}

/// Connects to one of `addresses` of `destination` before `deadline`. A caller that checks
/// addresses passes those that it allows, and no others are dialled (CVE-2020-8562).
///
/// Several are tried as in RFC 8305: alternating families, beginning with the first address's; the
/// next one 250 ms after the last or as soon as one fails; at most eight. The first that answers is
/// used, and the other attempts are abandoned. When all fail, the error is the first address's. On
/// a timeout it has all that were tried.
pub async fn connect_to(
    destination: HostPort<'_>,
    addresses: impl IntoIterator<Item = SocketAddr>,
    deadline: Instant,
) -> Result<TcpStream, DialError> {
    let mut addresses = addresses.into_iter();
    let Some(first) = addresses.next() else {
        return Err(DialError::NoAddress { host: destination.host.to_owned() });
    };
    let connected = match addresses.next() {
        // The usual case: there is nothing to choose.
        None => match timeout_at(deadline, TcpStream::connect(first)).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(source)) => Err(DialError::Connect { address: first.to_string(), source }),
            Err(_) => Err(DialError::Timeout { address: first.to_string() }),
        },
        Some(second) => {
            let turns = in_turns([first, second].into_iter().chain(addresses));
            // Boxed: rare, and larger than one attempt.
            let race = Box::pin(first_of(turns, deadline, TcpStream::connect));
            race.await.map_err(|tried| DialError::of_all(destination, tried))
        }
    };
    connected.inspect(tune)
}

/// Sets the options of every connection: no Nagle delay, and keepalive probes. A socket that
/// refuses an option still works, so failures are ignored.
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

#[cfg(test)]
mod tests;
