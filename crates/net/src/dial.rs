//! Opening TCP connections: resolve once, try the addresses side by side where there are several,
//! give up after a named time.

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

/// Probes start after this much silence: a member that vanished without a FIN is noticed even by an
/// idle watch (the value Go's `net.Dialer` uses by default in kube components is 30 s too).
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_PROBES: u32 = 3;

/// A destination as messages and proxies spell it: `host:port`, IPv6 in brackets.
#[derive(Debug, Clone, Copy)]
pub struct HostPort<'a> {
    /// DNS name or IP address, IPv6 without brackets.
    pub host: &'a str,
    pub port: u16,
}

/// Connects to `host:port` before `deadline`.
///
/// The name is resolved once and only the resolved addresses are dialled, as [`connect_to`] says.
pub async fn connect(host: &str, port: u16, deadline: Instant) -> Result<TcpStream, DialError> {
    let addresses = resolve(host, port, deadline).await?;
    connect_to(HostPort { host, port }, addresses, deadline).await
}

/// The addresses of `host:port`, each once, in the resolver's order; never none. How many of them
/// are used is the caller's affair: which ones are worth keeping depends on what for.
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

/// Connects to one of `addresses`, which `destination` was found to mean, before `deadline`:
/// whoever checks addresses hands on those that passed, and no others are dialled (CVE-2020-8562).
///
/// Several are tried as RFC 8305 says: families in turns beginning with the first address's, the
/// next one 250 ms after the last or as soon as one fails, eight at most. The first that answers is
/// taken and the other attempts are given up. When all fail, the first address's failure is told;
/// when time is up, all that was tried.
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
        // Most often: nothing is to be chosen.
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

/// Sets what every connection here wants: no Nagle delay and keepalive probes. A socket that
/// refuses an option still works, so failures are not errors.
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
