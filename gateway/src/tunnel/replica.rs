//! One tunnel-server and the links to it: one per runtime that needs one, and more only when it is
//! full.
//!
//! Each runtime drives its own links, so that a stream's bytes never wait for another core. All
//! tasks that need a link at the same time share one attempt. After a failure all of them leave the
//! server alone for a moment.

mod link_pool;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use net::backoff::Backoff;
use net::flight::{Flight, FlightWaiter};
use net::words::Causes;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use rustls_pki_types::ServerName;
use tokio::runtime::{Handle, Id};
use tokio::time::Instant;
use tokio_util::sync::DropGuard;
use tunnel::{ClusterName, Destination, Link, OpenError, Refusal, Stream};

use self::link_pool::{LinkOutcome, LinkPool, Pause, PooledLink, make};
use super::error::Unreachable;
use super::link::{Linking, Unlinked};

/// Most links of one runtime to one server: with 10,000 streams each, more than a core can serve.
const MOST_LINKS: usize = 8;
/// How long a server that could not be reached is left alone.
const PAUSES: Backoff = Backoff::doubling(Duration::from_millis(250), Duration::from_secs(2));
/// A lost or leaving link is replaced once before another server is asked.
const ATTEMPTS: usize = 2;

pub struct Replica {
    address: SocketAddr,
    name: ServerName<'static>,
    linking: Arc<Linking>,
    /// The server's name in messages.
    via: Arc<str>,
    open: Gauge,
    state: Mutex<LinkPool>,
    this: Weak<Self>,
}

/// Why the server opened no stream.
pub enum NotOpened {
    Refused(Refusal),
    Unreachable(Unreachable),
}

// === impl NotOpened ===

impl NotOpened {
    /// The outcome's word for spans.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Refused(refusal) => refusal.reason.as_str(),
            Self::Unreachable(_) => "unreachable",
        }
    }
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Unreachable(unreachable) => unreachable.fmt(f),
        }
    }
}

enum Step {
    Use(Link),
    Await(FlightWaiter<LinkOutcome>),
    Fail(Arc<Unlinked>),
}

// === impl Replica ===

impl Replica {
    pub fn new(address: SocketAddr, name: ServerName<'static>, linking: Arc<Linking>, open: Gauge) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            address,
            name,
            linking,
            via: format!("tunnel-server {address}").into(),
            open,
            state: Mutex::default(),
            this: this.clone(),
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn via(&self) -> Arc<str> {
        Arc::clone(&self.via)
    }

    /// Whether the last attempt to reach it failed.
    pub fn is_doubtful(&self) -> bool {
        self.state.lock().pause.is_some()
    }

    /// Whether there is a link to it that accepts streams.
    pub fn accepts_streams(&self) -> bool {
        let state = self.state.lock();
        state.by_runtime.values().flat_map(|links| &links.all).any(|held| held.link.is_usable())
    }

    /// Whether the current runtime has a link to it.
    pub fn has_link(&self) -> bool {
        let state = self.state.lock();
        state.by_runtime.get(&Handle::current().id()).is_some_and(|links| !links.all.is_empty())
    }

    /// Round-trip time of the last PING on a link of the current runtime.
    pub fn round_trip(&self) -> Option<Duration> {
        let state = self.state.lock();
        let links = state.by_runtime.get(&Handle::current().id())?;
        links.all.iter().filter_map(|held| held.link.rtt()).min()
    }

    /// Asks for a stream, on the current runtime. Dropping the future cancels the dial, but not a
    /// new link.
    pub async fn open(&self, cluster: &ClusterName, to: &Destination) -> Result<Stream, NotOpened> {
        let mut attempt = 1;
        loop {
            let link = self.link().await.map_err(|error| NotOpened::Unreachable(Unreachable::Unlinked(error)))?;
            match link.open(to, Some(cluster)).await {
                Ok(stream) => return Ok(stream),
                Err(OpenError::Refused(refusal)) => return Err(NotOpened::Refused(refusal)),
                // The member may have been dialled, but it received no request, so another dial
                // does no harm.
                Err(_) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => {
                    return Err(NotOpened::Unreachable(Unreachable::Lost(self.address, Causes::of(error))));
                }
            }
        }
    }

    async fn link(&self) -> Result<Link, Arc<Unlinked>> {
        loop {
            match self.step() {
                Step::Use(link) => return Ok(link),
                Step::Fail(error) => return Err(error),
                Step::Await(waiter) => match waiter.outcome().await {
                    Some(made) => made?,
                    None => return Err(Arc::new(Unlinked::Gone { address: self.address })),
                },
            }
        }
    }

    fn step(&self) -> Step {
        let runtime = Handle::current().id();
        let newest = self.linking.tls.current().number;
        let mut state = self.state.lock();
        let LinkPool { by_runtime, pause } = &mut *state;
        let links = by_runtime.entry(runtime).or_default();
        // A link with older files ends with its last stream once it is dropped here.
        links.all.retain(|held| held.generation == newest);
        let usable = links.all.iter().filter(|held| held.link.is_usable());
        if let Some(held) = usable.min_by_key(|held| held.link.streams()) {
            return Step::Use(held.link.clone());
        }
        if let Some(waiter) = links.making.as_ref().and_then(Flight::waiter) {
            return Step::Await(waiter);
        }
        if let Some(pause) = pause.as_ref().filter(|pause| pause.until > Instant::now()) {
            return Step::Fail(Arc::clone(&pause.why));
        }
        if links.all.len() >= MOST_LINKS {
            return Step::Fail(Arc::new(Unlinked::Full { address: self.address, limit: MOST_LINKS }));
        }
        let (making, waiter) = Flight::begin(&Handle::current(), make(self.this.clone(), runtime));
        links.making = Some(making);
        Step::Await(waiter)
    }

    /// Adds a new link to the pool.
    fn made(&self, runtime: Id, link: &Link, generation: u64, held: DropGuard) -> u64 {
        let mut state = self.state.lock();
        state.pause = None;
        let links = state.by_runtime.entry(runtime).or_default();
        links.next += 1;
        links.all.push(PooledLink { number: links.next, link: link.clone(), generation, _guard: held });
        links.next
    }

    fn failed(&self, error: Unlinked) -> Arc<Unlinked> {
        let error = Arc::new(error);
        let mut state = self.state.lock();
        let before = state.pause.as_ref().map_or(0, |pause| pause.failures);
        if state.pause.is_none() {
            // Once, and not for each of many attempts.
            tracing::warn!(%error, "cannot link to a tunnel-server, trying again while it is needed");
        }
        let (until, failures) = (Instant::now() + PAUSES.wait(before), before.saturating_add(1));
        state.pause = Some(Pause { until, failures, why: Arc::clone(&error) });
        error
    }

    fn forget(&self, runtime: Id, number: u64) {
        if let Some(links) = self.state.lock().by_runtime.get_mut(&runtime) {
            links.all.retain(|held| held.number != number);
        }
    }

    /// Drops links made with files that have changed since.
    fn weed(&self, runtime: Id) {
        let newest = self.linking.tls.current().number;
        if let Some(links) = self.state.lock().by_runtime.get_mut(&runtime) {
            links.all.retain(|held| held.generation == newest);
        }
    }
}

#[cfg(test)]
pub mod tests;
