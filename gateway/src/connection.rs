//! One client connection, as its requests see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::route::Served;
use auth::{Peer, User};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri};
use net::cancellation::Cancellation;
use net::pending::PendingPermit;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::holding::{self, Account};
use crate::needs::RequestNeeds;

/// Shared by the requests of one client connection.
pub struct Connection {
    gateway: Arc<RequestNeeds>,
    peer: Peer,
    served: Served,
    core: usize,
    address: HeaderValue,
    close: CancellationToken,
    held: Account,
    /// A request has arrived.
    has_begun: AtomicBool,
    /// A request was authenticated.
    is_known: AtomicBool,
    /// The permit among connections without an authenticated request.
    pending: Mutex<Option<PendingPermit>>,
    given_away: CancellationToken,
}

// === impl Connection ===

impl Connection {
    /// `served` is what its port serves.
    pub fn new(
        gateway: Arc<RequestNeeds>,
        peer: Peer,
        served: Served,
        core: usize,
        held: Account,
        permit: PendingPermit,
    ) -> Self {
        let address = peer.address().ip().to_canonical().to_string();
        let address = HeaderValue::from_maybe_shared(Bytes::from(address)).expect("an address is ASCII");
        Self {
            gateway,
            peer,
            served,
            core,
            address,
            close: CancellationToken::new(),
            held,
            has_begun: AtomicBool::new(false),
            is_known: AtomicBool::new(false),
            given_away: permit.token(),
            pending: Mutex::new(Some(permit)),
        }
    }

    pub fn gateway(&self) -> &Arc<RequestNeeds> {
        &self.gateway
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// What its port serves.
    pub fn served(&self) -> Served {
        self.served
    }

    /// The client's address for `X-Forwarded-For`, formatted once for all requests.
    pub fn address(&self) -> &HeaderValue {
        &self.address
    }

    /// Index of the core that serves it.
    pub fn core(&self) -> usize {
        self.core
    }

    /// Counts what the connection itself holds.
    pub fn held(&self) -> &Account {
        &self.held
    }

    /// Starts a request. Returns the account for what it holds.
    pub fn begin(&self, line: (&Method, &Uri), headers: &HeaderMap) -> Account {
        self.has_begun.store(true, Ordering::Relaxed);
        holding::open_request(&self.gateway.budget, self.core, &self.held, line, headers)
    }

    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// A request was authenticated as `user`'s: the connection is no stranger's any more, unless
    /// the user is anonymous.
    pub fn authenticated(&self, user: &Arc<User>) {
        if self.is_known() || user.is_anonymous() {
            return;
        }
        self.is_known.store(true, Ordering::Relaxed);
        self.held.holder().authenticated(user, self.peer.is_front_proxy());
        drop(self.pending.lock().take());
    }

    /// Whether a request was authenticated.
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// Completes when another connection got this one's place, before its user was known.
    pub async fn given_away(&self) {
        self.given_away.cancelled().await;
    }

    /// Accepts no more requests on this connection: GOAWAY, or `Connection: close`.
    pub fn close_soon(&self) {
        self.close.cancel();
    }

    /// Completes when [`Connection::close_soon`] was called.
    pub fn should_close(&self) -> Cancellation {
        Cancellation::of(self.close.clone())
    }
}
