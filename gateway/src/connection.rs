//! One client connection, as its requests see it.

use std::sync::Arc;

use auth::Peer;
use tokio::sync::Notify;

use crate::shared::Shared;

/// What the requests of one client connection share.
pub struct Connection {
    gateway: Arc<Shared>,
    peer: Peer,
    core: usize,
    close: Notify,
}

// === impl Connection ===

impl Connection {
    pub fn new(gateway: Arc<Shared>, peer: Peer, core: usize) -> Self {
        Self { gateway, peer, core, close: Notify::new() }
    }

    pub fn gateway(&self) -> &Arc<Shared> {
        &self.gateway
    }

    pub fn peer(&self) -> &Peer {
        &self.peer
    }

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
