//! Bounded waiting: on conditions, on events, on gates. No test sleeps for a while and hopes.
//!
//! Every wait ends within a limit, by panicking with what it awaited and where. The limits are
//! tokio time. In a test with paused time the clock jumps ahead whenever all tasks are idle, also
//! while a real socket is about to become readable, so paused time and the servers of this kit do
//! not go together.

use std::fmt::Display;
use std::future::Future;
use std::net::Ipv4Addr;
use std::panic::Location;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::ports;

/// Length of the kit's own waits: long enough for a loaded machine, short enough to fail a test by
/// itself. An event that has to come before a timer of the program needs a limit of its own.
pub const WAIT: Duration = Duration::from_secs(20);

/// Runs of [`timely`].
const RUNS: usize = 3;

/// How often [`eventually`] checks.
const POLL: Duration = Duration::from_millis(5);

/// "Something changed", for waiters that check themselves.
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

/// As [`eventually`], for a condition that has to be asked for: `holds` is asked every few
/// milliseconds.
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

/// As [`tokio::time::timeout`], but `quiet` passes in steps that this task has to see: a machine
/// that stands still for a while, or gives this process no time, is not taken for a peer that does
/// nothing.
pub async fn unless_quiet<F: Future>(quiet: Duration, future: F) -> Option<F::Output> {
    const STEPS: u32 = 20;
    let mut future = std::pin::pin!(future);
    for _ in 0..STEPS {
        if let Ok(output) = tokio::time::timeout(quiet / STEPS, future.as_mut()).await {
            return Some(output);
        }
    }
    None
}

/// Asserts that `run`, which returns the time that matters, takes less than `limit` in one of a few
/// runs.
///
/// For promises in seconds: a program that is too slow is too slow each time, a busy machine is
/// not. A delay far longer than that of any busy machine (a timer, a keepalive) needs no such care:
/// [`within`] a time between the two.
#[track_caller]
pub fn timely(limit: Duration, what: impl Display, mut run: impl AsyncFnMut() -> Duration) -> impl Future<Output = ()> {
    let caller = Location::caller();
    async move {
        let mut took = Vec::new();
        while took.len() < RUNS {
            took.push(run().await);
            if took.last().is_some_and(|last| *last < limit) {
                return;
            }
        }
        panic!("{what}: {took:?}, never less than {limit:?} (at {caller})");
    }
}

/// A TCP port of 127.0.0.1 that was free a moment ago, and that the system does not give out by
/// itself.
///
/// For tests about refused connections, servers that come back where they were, and programs that
/// cannot be given a listener. Everything else binds port 0.
pub async fn free_port() -> u16 {
    for port in ports::numbers() {
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err() {
            return port;
        }
    }
    panic!("somebody listens on every port of the tests");
}

// === impl Signal ===

impl Signal {
    /// A signal that was not given yet.
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

    /// Lets all waiters through, now and later.
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
