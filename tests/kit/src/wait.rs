//! Bounded waiting: on conditions, on events, on gates. Nobody in a test sleeps for a while and hopes.
//!
//! Every wait ends within a limit, by panicking with what was awaited and where. The limits are tokio time. In a test with
//! paused time the clock jumps ahead whenever all tasks are idle, also while a real socket is about to become readable, so
//! paused time and the servers of this kit do not go together.

use std::fmt::Display;
use std::future::Future;
use std::net::Ipv4Addr;
use std::panic::Location;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How long the kit's own waits last: long enough for a loaded machine, short enough to fail a test by itself.
pub const WAIT: Duration = Duration::from_secs(10);

/// How often [`eventually`] looks.
const POLL: Duration = Duration::from_millis(5);

/// "Something changed", for waiters that look for themselves what it was.
#[derive(Debug)]
pub struct Signal(watch::Sender<()>);

/// A barrier the test opens once, for good.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

/// A task that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct AbortOnDrop<T = ()>(pub(crate) JoinHandle<T>);

/// Waits until `condition` holds, looking every few milliseconds; panics after `limit`.
///
/// Prefer an event where there is one; this is for conditions that announce themselves nowhere.
#[track_caller]
pub fn eventually(limit: Duration, mut condition: impl FnMut() -> bool) -> impl Future<Output = ()> {
    within(limit, "a condition", async move {
        let mut interval = tokio::time::interval(POLL);
        while !condition() {
            interval.tick().await;
        }
    })
}

/// As [`eventually`], for a condition that has to be asked for: `holds` is asked every few milliseconds.
#[track_caller]
pub fn becomes(limit: Duration, what: impl Display, mut holds: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    within(limit, what, async move {
        let mut interval = tokio::time::interval(POLL);
        while !holds().await {
            interval.tick().await;
        }
    })
}

/// Awaits `future`; panics after `limit`, naming `what` was awaited and the caller.
#[track_caller]
pub fn within<F: Future>(limit: Duration, what: impl Display, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        tokio::time::timeout(limit, future)
            .await
            .unwrap_or_else(|_| panic!("{what}: not within {limit:?} (awaited at {caller})"))
    }
}

/// A TCP port of 127.0.0.1 that nobody listened on a moment ago.
///
/// Somebody else may take it before the caller does: for tests about refused connections, or programs that cannot be given a
/// listener. Everything else binds port 0.
pub async fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
    listener.local_addr().expect("a bound socket has an address").port()
}

// === impl Signal ===

impl Signal {
    /// A signal nobody has given yet.
    pub fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    /// Makes all waiters look again.
    pub fn notify(&self) {
        self.0.send_replace(());
    }

    /// Waits until `check` finds something; panics after [`WAIT`], naming `what` was awaited.
    #[track_caller]
    pub fn until<T>(&self, what: impl Display, mut check: impl FnMut() -> Option<T>) -> impl Future<Output = T> {
        // Subscribed before the first look, so that a change in between is seen.
        let mut changes = self.0.subscribe();
        within(WAIT, what, async move {
            loop {
                if let Some(found) = check() {
                    return found;
                }
                changes.changed().await.expect("the borrowed signal is alive");
            }
        })
    }
}

impl Default for Signal {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Gate ===

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets everybody through, now and later.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Waits, without limit, until the gate is open.
    pub async fn passed(&self) {
        let mut state = self.0.subscribe();
        state.wait_for(|open| *open).await.expect("the gate holds its own sender");
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

// === impl AbortOnDrop ===

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
