//! Making links and keeping them.
//!
//! Each `--server` is followed by one task that resolves its name; each address by one that makes
//! and keeps the links through it ([`keeper`]). Behind an address may be one server, or a load
//! balancer and any number of them: who answered is known from the answer only, and what there is
//! already is known from [`Links`].

mod attempt;
mod backoff;
mod keeper;
mod name;

use std::sync::Arc;
use std::time::Duration;

use net::drain::Drain;
use rustls_pki_types::ServerName;
use tokio::sync::Notify;
use tunnel::{ClusterName, Destination, Settings};

use crate::credentials::Credentials;
use crate::forward::Forwarder;
use crate::links::Links;
use crate::metrics::Metrics;
use crate::outbound::Outbound;

/// What all keepers share.
#[derive(Debug)]
pub struct Connector {
    pub cluster: ClusterName,
    /// Names this process; see `Tunnel-Agent`.
    pub agent: String,
    /// In place of the server's host.
    pub server_name: Option<ServerName<'static>>,
    pub credentials: Arc<Credentials>,
    pub outbound: Outbound,
    pub settings: Settings,
    pub links: Arc<Links>,
    pub forwarder: Arc<Forwarder>,
    pub metrics: Metrics,
    pub drain: Drain,
}

/// One `--server`.
#[derive(Debug)]
struct Server {
    /// As the operator wrote it.
    name: Destination,
    /// For its certificate.
    verified: ServerName<'static>,
    /// Given by keepers that failed or were asked to leave: the name may lead elsewhere by now.
    look_again: Notify,
}

/// For TCP, proxy and TLS together, and as much again for the registration.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

// === impl Connector ===

impl Connector {
    /// Makes and keeps links to `server` until the drain, and then until they have ended.
    pub async fn run(self: Arc<Self>, server: Destination) {
        let verified = self.server_name.clone().or_else(|| ServerName::try_from(server.host().to_owned()).ok());
        let Some(verified) = verified else {
            tracing::error!(%server, "this host cannot be verified: give --server-name");
            return;
        };
        let server = Arc::new(Server { name: server, verified, look_again: Notify::new() });
        name::follow(self, server).await;
    }
}
