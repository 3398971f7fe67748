//! Connects to a destination: resolves its name once, checks each address, and dials one that
//! passed.

use std::net::{IpAddr, SocketAddr};

use net::dial::{DialError, HostPort, connect_to};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tunnel::Destination;

use super::lookup::Lookups;
use crate::targets::{Candidate, Check, NotAllowed, Targets};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error("{MOST_STREAMS} streams are open: close some or run more agents", MOST_STREAMS = super::MOST_STREAMS)]
    TooManyStreams,
    #[error("{MOST_DIALS} dials are in progress: retry later", MOST_DIALS = super::MOST_DIALS)]
    TooManyDials,
    #[error(transparent)]
    Dial(#[from] DialError),
}

pub async fn connect(
    targets: &Targets,
    lookups: &Lookups,
    candidate: &Candidate,
    asked: &Destination,
    deadline: Instant,
) -> Result<TcpStream, Failure> {
    let addresses = match resolve(lookups, candidate, deadline).await {
        Err(failure) if candidate.check() == Check::Unnamed && !failure.is_timeout() => {
            tracing::debug!(destination = %asked, reason = %failure, "refused: no --allow names it, and it has no addresses");
            Vec::new()
        }
        resolved => resolved?,
    };
    let mut allowed = addresses.into_iter().filter(|address| targets.permits(candidate, address.ip())).peekable();
    if allowed.peek().is_none() {
        return Err(targets.refusal(candidate, asked).into());
    }
    let destination = HostPort { host: candidate.destination.host(), port: candidate.destination.port() };
    Ok(connect_to(destination, allowed, deadline).await?)
}

async fn resolve(lookups: &Lookups, candidate: &Candidate, deadline: Instant) -> Result<Vec<SocketAddr>, DialError> {
    let destination = &candidate.destination;
    if let Ok(address) = destination.host().parse::<IpAddr>() {
        return Ok(vec![(address, destination.port()).into()]);
    }
    let addresses = timeout_at(deadline, lookups.resolve(candidate.check(), destination))
        .await
        .map_err(|_| DialError::Timeout { address: destination.to_string() })?
        .map_err(|source| DialError::Resolve { host: destination.host().to_owned(), source })?;
    if addresses.is_empty() { Err(DialError::NoAddress { host: destination.host().to_owned() }) } else { Ok(addresses) }
}
