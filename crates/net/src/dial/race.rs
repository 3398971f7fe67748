//! Connects to the first of several addresses that answers: RFC 8305, "Happy Eyeballs", §4 and §5.
//!
//! A broken IPv6 does not cost the whole timeout, and a slow address is not given up while others
//! are tried.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, sleep_until};

/// RFC 8305 §5: "Connection Attempt Delay", recommended value.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);
/// Most addresses of one name, because attempts take sockets.
const MOST_ADDRESSES: usize = 8;

/// An address without a connection.
pub(super) struct Tried {
    pub(super) address: SocketAddr,
    /// None if it did not answer.
    pub(super) failure: Option<io::Error>,
}

/// The first address's family first, then the families alternate, so that many addresses of one
/// family do not displace the other.
pub(super) fn in_turns(addresses: impl IntoIterator<Item = SocketAddr>) -> VecDeque<SocketAddr> {
    let mut addresses = addresses.into_iter().peekable();
    let first_is_v6 = addresses.peek().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (VecDeque<_>, VecDeque<_>) =
        addresses.partition(|address| address.is_ipv6() == first_is_v6);
    let mut turns = VecDeque::new();
    while turns.len() < MOST_ADDRESSES && !(first.is_empty() && second.is_empty()) {
        turns.extend(first.pop_front());
        turns.extend(second.pop_front());
    }
    turns.truncate(MOST_ADDRESSES);
    turns
}

/// The result of the first successful `attempt` at `addresses`, in that order; the other attempts
/// are dropped. The error has those that were tried, in order.
pub(super) async fn first_of<T, F: Future<Output = io::Result<T>>>(
    mut addresses: VecDeque<SocketAddr>,
    deadline: Instant,
    attempt: impl Fn(SocketAddr) -> F,
) -> Result<T, Vec<Tried>> {
    let mut attempts = FuturesUnordered::new();
    let mut tried = Vec::with_capacity(addresses.len());
    loop {
        match addresses.pop_front() {
            Some(address) => {
                let (turn, attempt) = (tried.len(), attempt(address));
                tried.push(Tried { address, failure: None });
                attempts.push(async move { (turn, attempt.await) });
            }
            None if attempts.is_empty() => return Err(tried),
            None => {}
        }
        tokio::select! {
            biased;
            Some((turn, outcome)) = attempts.next() => match outcome {
                Ok(connected) => return Ok(connected),
                Err(failure) => tried[turn].failure = Some(failure),
            },
            () = sleep_until(deadline) => return Err(tried),
            () = sleep(NEXT_ADDRESS_AFTER), if !addresses.is_empty() => {}
        }
    }
}

#[cfg(test)]
mod tests;
