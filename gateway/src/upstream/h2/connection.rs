//! One HTTP/2 connection to a member: counts its streams and checks that it is alive.

mod driver;
mod settings;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use h2::client::SendRequest;
use http::HeaderMap;
use net::gather::gather;
use net::http2;
use net::seal::Seal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use self::driver::{Driver, drive, retired};
use self::settings::Settings;
use super::resets::Resets;
use super::unsent::UnsentHeads;
use crate::headers::size::Unfit;
use crate::holding::Account;
use crate::inbound::{Inbound, Marks};
use crate::metrics::InFlight;
use crate::unread::{Collecting, Collector};
use crate::upstream::Lost;
use crate::upstream::connect::{ConnectError, Target};
use crate::upstream::shed::{ConnectionBytes, Counted};

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
    unsent: UnsentHeads,
    collector: Arc<Collector>,
    /// Something was received since the last check.
    traffic: AtomicBool,
    /// Notified of every returned stream.
    room: Arc<Notify>,
    /// Notified when a closing connection has no streams left.
    emptied: Arc<Notify>,
    held: ConnectionBytes,
}

/// One stream of a connection, returned when dropped.
pub struct Lease {
    connection: Arc<Connection>,
    sender: SendRequest<Bytes>,
}

// === impl Connection ===

impl Connection {
    /// Sends the HTTP/2 preface and waits for the member's SETTINGS, which contain its stream
    /// limit. Then a separate task drives the connection while it lives.
    pub async fn start<T>(
        transport: T,
        target: &Target,
        held: ConnectionBytes,
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
            unsent: UnsentHeads::new(),
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

    pub fn unsent(&self) -> &UnsentHeads {
        &self.unsent
    }

    pub fn collector(&self) -> &Arc<Collector> {
        &self.collector
    }

    /// Counts what the connection itself holds.
    pub fn account(&self) -> &Account {
        &self.held.account
    }

    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Takes no new streams; open ones continue.
    pub fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.unsent.close();
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

#[cfg(test)]
mod tests;
