//! Carrying a permitted request to its member and the answer back.

pub mod attempt;
pub mod credential;
pub mod forward;
pub mod framing;
pub mod location;
pub mod subpath;
pub mod upgrade;
pub mod uri;
pub mod wishes;
pub mod workload;

use std::net::SocketAddr;
use std::sync::Arc;

use api::route::ProxyRoute;
use auth::Permit;
use net::drain::Drain;

use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::exchange::Acting;

/// A permitted call to one cluster: what both the plain and the upgrading path need.
pub struct Call {
    pub cluster: Arc<Cluster>,
    /// Offset of the member's part in the request path.
    pub remainder: usize,
    pub permit: Permit,
    pub acting: Acting,
    pub client: SocketAddr,
    /// Index of the core that serves the client's connection.
    pub core: usize,
    pub drain: Drain,
}

// === impl Call ===

impl Call {
    pub fn new(
        connection: &Connection,
        cluster: Arc<Cluster>,
        route: &ProxyRoute,
        permit: Permit,
        acting: Acting,
    ) -> Self {
        Self {
            cluster,
            remainder: route.remainder,
            permit,
            acting,
            client: connection.peer().address(),
            core: connection.core(),
            drain: connection.gateway().drain.clone(),
        }
    }
}
