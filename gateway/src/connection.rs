//! One client connection, as its requests see it.

use std::sync::Arc;

use auth::Peer;
use bytes::Bytes;
use http::HeaderValue;
use tokio::sync::Notify;

use crate::needs::RequestNeeds;

/// What the requests of one client connection share.
pub struct Connection {
    gateway: Arc<RequestNeeds>,
    peer: Peer,
    core: usize,
    address: HeaderValue,
    close: Notify,
}

// === impl Connection ===

impl Connection {
    pub fn new(gateway: Arc<RequestNeeds>, peer: Peer, core: usize) -> Self {
        let address = peer.address().ip().to_canonical().to_string();
        let address = HeaderValue::from_maybe_shared(Bytes::from(address)).expect("an address is ASCII");
        Self { gateway, peer, core, address, close: Notify::new() }
    }

    pub fn gateway(&self) -> &Arc<RequestNeeds> {
        &self.gateway
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The client's address as `X-Forwarded-For` has it: written once, for all requests.
    pub fn address(&self) -> &HeaderValue {
        &self.address
    }

    /// Index of the core that serves it.
    pub fn core(&self) -> usize {
        self.core
    }

    /// Takes no further requests on this connection: GOAWAY, or `Connection: close`.
    pub fn close_soon(&self) {
        self.close.notify_one();
    }

    /// Completes when [`Connection::close_soon`] was called.
    pub async fn should_close(&self) {
        self.close.notified().await;
    }
}
