//! Connecting to a destination: its name is resolved once, each address is checked, and the first that answers is taken.
//!
//! Addresses are tried one after the other, the next one as soon as the last has failed or has not answered for a moment, families
//! taking turns (RFC 8305 §4 and §5): a broken IPv6 does not cost the whole time.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use net::dial::tune;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout_at};
use tunnel::Destination;

use super::lookup::Lookups;
use crate::targets::{Candidate, Check, NotAllowed, Targets};

/// RFC 8305 §5: "Connection Attempt Delay", recommended value.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

/// Why there is no connection. The texts begin as those of Go's dialer do, which clients know.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("{MOST_STREAMS} streams are open: close some or run more agents", MOST_STREAMS = super::MOST_STREAMS)]
    TooManyStreams,
    #[error("{MOST_DIALS} connects are under way: try again later", MOST_DIALS = super::MOST_DIALS)]
    TooManyDials,
    #[error("dial tcp: lookup {host}: {why}")]
    Lookup { host: String, why: String },
    #[error("dial tcp {address}: connect: {why}")]
    Connect { address: String, why: String },
    #[error("dial tcp {address}: i/o timeout: it does not answer")]
    Timeout { address: String },
}

pub async fn connect(
    targets: &Targets,
    lookups: &Lookups,
    candidate: &Candidate,
    asked: &Destination,
    deadline: Instant,
) -> Result<TcpStream, Failure> {
    let timed_out = || Failure::Timeout { address: candidate.place.to_string() };
    let resolved = timeout_at(deadline, resolve(lookups, candidate)).await.map_err(|_| timed_out())?;
    let addresses = match resolved {
        Err(failure) if candidate.check() == Check::Unnamed => {
            tracing::debug!(destination = %asked, reason = %failure, "refused: no --allow names it, and it has no addresses");
            Vec::new()
        }
        resolved => resolved?,
    };
    let allowed: Vec<_> = addresses.into_iter().filter(|address| targets.permits(candidate, address.ip())).collect();
    if allowed.is_empty() {
        return Err(targets.refusal(candidate, asked).into());
    }
    let connected = async {
        match allowed[..] {
            // Most often: nothing is to be chosen.
            [address] => connected(address, TcpStream::connect(address).await),
            _ => first_of(in_turns(allowed)).await,
        }
    };
    timeout_at(deadline, connected).await.map_err(|_| timed_out())?
}

fn connected(address: SocketAddr, connected: io::Result<TcpStream>) -> Result<TcpStream, Failure> {
    let socket = connected.map_err(|error| failed(address, &error))?;
    tune(&socket);
    Ok(socket)
}

async fn resolve(lookups: &Lookups, candidate: &Candidate) -> Result<Vec<SocketAddr>, Failure> {
    let place = &candidate.place;
    if let Ok(address) = place.host().parse::<IpAddr>() {
        return Ok(vec![(address, place.port()).into()]);
    }
    let failed = |why: String| Failure::Lookup { host: place.host().to_owned(), why };
    let addresses = lookups.resolve(candidate.check(), place).await.map_err(|error| failed(told(&error)))?;
    if addresses.is_empty() { Err(failed("no such host".into())) } else { Ok(addresses) }
}

/// What the resolver's error means. The standard library hands on the text of `gai_strerror`, and nothing else.
fn told(error: &io::Error) -> String {
    let text = error.to_string();
    let unknown =
        ["Name or service not known", "No address associated with hostname", "nodename nor servname provided"];
    if unknown.iter().any(|unknown| text.contains(unknown)) {
        return "no such host".into();
    }
    text.trim_start_matches("failed to lookup address information: ").to_lowercase()
}

/// The first family first, then the families in turns.
fn in_turns(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    let mut turns = VecDeque::new();
    while !first.is_empty() || !second.is_empty() {
        turns.extend(first.pop_front());
        turns.extend(second.pop_front());
    }
    turns
}

async fn first_of(mut addresses: VecDeque<SocketAddr>) -> Result<TcpStream, Failure> {
    let mut attempts = FuturesUnordered::new();
    let mut failure = None;
    loop {
        if let Some(address) = addresses.pop_front() {
            attempts.push(async move { (address, TcpStream::connect(address).await) });
        }
        let (address, outcome) = tokio::select! {
            Some(outcome) = attempts.next() => outcome,
            () = sleep(NEXT_ADDRESS_AFTER), if !addresses.is_empty() => continue,
        };
        match connected(address, outcome) {
            Ok(socket) => return Ok(socket),
            // The first failure is that of the address the resolver preferred.
            Err(error) => {
                failure.get_or_insert(error);
            }
        }
        if attempts.is_empty()
            && addresses.is_empty()
            && let Some(failure) = failure.take()
        {
            return Err(failure);
        }
    }
}

fn failed(address: SocketAddr, error: &io::Error) -> Failure {
    let address = address.to_string();
    // The system's own patience ran out before ours.
    if error.kind() == io::ErrorKind::TimedOut {
        return Failure::Timeout { address };
    }
    Failure::Connect { address, why: words(error) }
}

/// As the C library and Go word it: without the number.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".into(),
        io::ErrorKind::HostUnreachable => "no route to host".into(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".into(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".into(),
        _ => error.to_string().to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let given = ["[::1]:1", "[::2]:1", "1.1.1.1:1", "[::3]:1", "2.2.2.2:1"].map(address);
        let turns = in_turns(given.into());
        assert_eq!(turns, ["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"].map(address));
    }

    #[tokio::test]
    async fn a_second_address_is_tried_when_the_first_refuses() {
        let free = kit::wait::free_port().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let good = listener.local_addr().unwrap();
        let refused = SocketAddr::from(([127, 0, 0, 1], free));
        let socket = first_of([refused, good].into()).await.unwrap();
        assert_eq!(socket.peer_addr().unwrap(), good);
        let failure = first_of([refused].into()).await.unwrap_err();
        assert_eq!(failure.to_string(), format!("dial tcp {refused}: connect: connection refused"));
    }
}
