//! Carrying a permitted request to its member and the answer back.

pub mod attempt;
pub mod credential;
pub mod forward;
pub mod framing;
pub mod location;
pub mod subpath;
pub mod upgrade;
pub mod uri;
pub mod workload;

use std::sync::Arc;

use api::route::{MemberRequest, ProxyRoute};
use auth::Permit;
use net::drain::Drain;

use crate::clusters::Cluster;
use crate::connection::Connection;
use crate::exchange::Acting;
use crate::limits::Slots;

/// A permitted call to one cluster: what both the plain and the upgrading path need.
pub struct Call<'a> {
    pub cluster: Arc<Cluster>,
    /// Offset of the member's part in the request path.
    pub remainder: usize,
    pub asks: &'a MemberRequest<'a>,
    pub permit: Permit,
    pub acting: Acting,
    /// The client's.
    pub connection: Arc<Connection>,
}

// === impl Call ===

impl<'a> Call<'a> {
    pub fn new(
        connection: &Arc<Connection>,
        cluster: Arc<Cluster>,
        route: &'a ProxyRoute<'a>,
        permit: Permit,
        acting: Acting,
    ) -> Self {
        Self {
            cluster,
            remainder: route.remainder,
            asks: &route.asks,
            permit,
            acting,
            connection: Arc::clone(connection),
        }
    }

    /// What its request counts as when the caller has left and the member goes on with it.
    pub fn lingers(&self) -> Slots {
        self.connection.gateway().limits.lingers(self.permit.user(), self.cluster.load())
    }

    pub fn drain(&self) -> &Drain {
        &self.connection.gateway().drain
    }
}
