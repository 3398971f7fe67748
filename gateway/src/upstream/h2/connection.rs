//! One HTTP/2 connection to a member: counts its streams and checks that it is alive.

mod settings;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{Ping, PingPong};
use http::HeaderMap;
use net::gather::{Driven, Gathered, gather};
use net::http2;
use net::seal::Seal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use self::settings::Settings;
use super::resets::Resets;
use crate::headers::size::Unfit;
use crate::inbound::{Inbound, Marks};
use crate::metrics::InFlight;
use crate::unread::{Collecting, Collector};
use crate::upstream::Lost;
use crate::upstream::connect::{ConnectError, Target};
use crate::upstream::shed::{Counted, GaveWay, Held};

/// One connection, shared by its requests.
pub struct Connection {
    sender: SendRequest<Bytes>,
    /// Leases. Not a count of permits, because the last lease wakes the waiter for an empty
    /// connection, and each wakes a waiter for room.
    in_use: AtomicUsize,
    closing: AtomicBool,
    /// Marks of heads from which [`crate::inbound`] removed names.
    marks: Marks,
    resets: Resets,
    collector: Arc<Collector>,
    /// Something was received since the last check.
    traffic: AtomicBool,
    /// Notified of every returned stream.
    room: Arc<Notify>,
    /// Notified when a closing connection has no streams left.
    emptied: Arc<Notify>,
    held: Held,
}

/// One stream of a connection, returned when dropped.
pub struct Lease {
    connection: Arc<Connection>,
    sender: SendRequest<Bytes>,
}

type Driver<T> = Collecting<Driven<h2::client::Connection<Gathered<T>, Bytes>, T>>;

// === impl Connection ===

impl Connection {
    /// Sends the HTTP/2 preface and waits for the member's SETTINGS, which contain its stream
    /// limit. Then a separate task drives the connection while it lives.
    pub async fn start<T>(
        transport: T,
        target: &Target,
        held: Held,
        open: InFlight,
        room: Arc<Notify>,
        leaving: Option<CancellationToken>,
    ) -> Result<Arc<Self>, ConnectError>
    where
        T: AsyncRead + AsyncWrite + Seal + Unpin + Send + 'static,
    {
        let failed = |source: Lost| ConnectError::Http2 { address: target.address(), source };
        let marks = Marks::default();
        let collector = Arc::<Collector>::default();
        let io =
            Inbound::of_member(transport, marks.clone()).attended_by(Arc::clone(&collector)).held_for(&held.account);
        let (io, outlet) = gather(io);
        let handshake = Settings::builder().handshake::<_, Bytes>(io);
        let started = async {
            let (sender, driver) = handshake.await.map_err(|error| failed(error.into()))?;
            let driver = outlet.drive(driver).reading_at_most(Settings::TURN);
            let mut driver = Collecting::new(driver, Arc::clone(&collector));
            let streams = |driver: &mut Driver<Inbound<T>>| driver.driver().connection().max_concurrent_send_streams();
            let settled = http2::settled(&mut driver, streams).await;
            settled.map_err(|error| failed(error.map_or_else(|| "closed by the member at once".into(), Lost::from)))?;
            Ok::<_, ConnectError>((sender, driver))
        };
        let (sender, mut driver) = match timeout(target.dial_timeout, started).await {
            Ok(started) => started?,
            Err(_) => return Err(failed(format!("no SETTINGS within {:?}", target.dial_timeout).into())),
        };
        if sender.current_max_send_streams() == 0 {
            return Err(ConnectError::NoStreams { address: target.address() });
        }
        let pings = driver.driver().connection().ping_pong().expect("taken once");
        let emptied = Arc::<Notify>::default();
        let driver = Counted::new(driver, &held);
        let connection = Arc::new(Self {
            sender,
            in_use: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            marks: marks.clone(),
            resets: Resets::default(),
            collector,
            traffic: AtomicBool::new(true),
            room,
            emptied: Arc::clone(&emptied),
            held,
        });
        // Weak, so that the connection ends once the pool and the last stream have dropped it.
        let retired = retired(leaving, Arc::downgrade(&connection), emptied, target.ended.clone());
        tokio::spawn(drive(driver, pings, marks, Arc::downgrade(&connection), open, retired));
        Ok(connection)
    }

    /// A stream of this connection, if one is free.
    pub fn lease(self: &Arc<Self>) -> Option<Lease> {
        if !self.has_room() {
            return None;
        }
        // Only the pool could have added a lease since the check, and it calls `lease` under its
        // lock.
        self.in_use.fetch_add(1, Ordering::Relaxed);
        Some(Lease { connection: Arc::clone(self), sender: self.sender.clone() })
    }

    pub fn has_room(&self) -> bool {
        !self.is_closing() && self.in_use.load(Ordering::Relaxed) < self.max_streams()
    }

    /// The member's current stream limit. Takes a lock.
    pub fn max_streams(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    pub fn resets(&self) -> &Resets {
        &self.resets
    }

    pub fn collector(&self) -> &Arc<Collector> {
        &self.collector
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Takes no new streams; open ones continue.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    fn is_unused(&self) -> bool {
        self.in_use.load(Ordering::Relaxed) == 0
    }

    /// Why these headers must not be passed on, as found before they were parsed.
    pub fn unfit(&self, headers: &mut HeaderMap) -> Option<Unfit> {
        self.marks.take(headers)
    }

    /// The connection ended, or will soon end, because of the bytes that it holds.
    pub fn is_shed(&self) -> bool {
        self.held.account.is_ended()
    }

    pub fn saw_traffic(&self) {
        self.traffic.store(true, Ordering::Relaxed);
    }
}

// === impl Lease ===

impl Lease {
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    pub fn sender(&mut self) -> &mut SendRequest<Bytes> {
        &mut self.sender
    }

    /// Fails if the connection is closing. Otherwise does not wait: the lease is within the peer's
    /// stream limit.
    pub async fn ready(&mut self) -> Result<(), h2::Error> {
        poll_fn(|cx| self.sender.poll_ready(cx)).await
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let last = self.connection.in_use.fetch_sub(1, Ordering::Relaxed) == 1;
        if last && self.connection.is_closing() {
            self.connection.emptied.notify_one();
        }
        // One stream is room for one request. Waking all that wait for a dial would make them
        // compete for it.
        self.connection.room.notify_one();
    }
}

/// Drives the connection to its end. Sends a PING after a long silence. Without an answer the
/// connection is dropped, which ends its streams with an error, so that watches do not hang.
async fn drive<T: AsyncRead + AsyncWrite + Seal + Unpin>(
    mut driver: Counted<Driver<T>>,
    mut pings: PingPong,
    marks: Marks,
    connection: std::sync::Weak<Connection>,
    open: InFlight,
    retired: impl Future<Output = ()>,
) {
    let mut retired = pin!(retired);
    let mut look = tokio::time::interval(Settings::PING_AFTER);
    let mut idle_looks = 0;
    let end = loop {
        tokio::select! {
            end = &mut driver => break failure(end),
            () = &mut retired => break None,
            _ = look.tick() => {}
        }
        let Some(shared) = connection.upgrade() else { continue };
        if shared.traffic.swap(false, Ordering::Relaxed) {
            idle_looks = 0;
            continue;
        }
        idle_looks = if shared.is_unused() { idle_looks + 1 } else { 0 };
        if idle_looks >= Settings::IDLE_LOOKS {
            // Leases are made on this core's thread, so there can be none since the check above.
            shared.close();
            break None;
        }
        let patient = !shared.is_unused();
        drop(shared);
        tokio::select! {
            // First: the answer may be in the socket when the timeout fires.
            biased;
            end = &mut driver => break failure(end),
            () = &mut retired => break None,
            answers = answers(&mut pings, &marks, patient) => if !answers {
                break Some("no answer to PING".into());
            },
        }
    };
    if let Some(connection) = connection.upgrade() {
        connection.close();
    }
    if let Some(reason) = end {
        tracing::debug!(%reason, "connection to member ended");
    }
    drop((driver, open));
}

/// Why the connection ended, unless it ended cleanly.
fn failure(end: Result<Result<(), h2::Error>, GaveWay>) -> Option<Lost> {
    match end {
        Ok(end) => end.err().map(Lost::from),
        Err(gave_way) => Some(gave_way.to_string().into()),
    }
}

/// Whether the member answers a PING. With `patient`, any other bytes count as a sign of life for
/// some time.
async fn answers(pings: &mut PingPong, marks: &Marks, patient: bool) -> bool {
    let mut pong = pin!(pings.ping(Ping::opaque()));
    let asked = Instant::now();
    loop {
        let heard = marks.bytes();
        if let Ok(pong) = timeout(Settings::PONG_WITHIN, &mut pong).await {
            return pong.is_ok();
        }
        if !patient || marks.bytes() == heard || asked.elapsed() >= Settings::PONG_BEHIND {
            return false;
        }
    }
}

/// Completes when the cluster is no longer registered, or when the way to the member is about to
/// close and no request is left on the connection; new ones are not accepted meanwhile.
async fn retired(
    leaving: Option<CancellationToken>,
    connection: std::sync::Weak<Connection>,
    emptied: Arc<Notify>,
    ended: CancellationToken,
) {
    tokio::select! {
        () = emptied_to_leave(leaving, connection, emptied) => {}
        () = ended.cancelled() => {}
    }
}

async fn emptied_to_leave(
    leaving: Option<CancellationToken>,
    connection: std::sync::Weak<Connection>,
    emptied: Arc<Notify>,
) {
    match leaving {
        Some(leaving) => leaving.cancelled_owned().await,
        None => std::future::pending().await,
    }
    let unused = connection.upgrade().is_none_or(|connection| {
        connection.close();
        // Leases are made on this core's thread, where this runs too.
        connection.is_unused()
    });
    if !unused {
        emptied.notified().await;
    }
}

#[cfg(test)]
mod tests;
