//! The ports of a gateway: its own, and another one for members alone if that is configured.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::Context;
use api::route::Served;
use net::listen;
use rustls::ServerConfig;

use super::threads::Threads;
use crate::config::Config;
use crate::needs::RequestNeeds;
use crate::server::Server;

/// Bound ports with one listener per core, not served yet.
pub struct Ports {
    own: Vec<TcpListener>,
    served: Served,
    /// The port like Open Cluster Management's user server; empty if there is none.
    user_server: Vec<TcpListener>,
}

// === impl Ports ===

impl Ports {
    pub fn bind(config: &Config) -> anyhow::Result<Self> {
        let bind = |address| {
            listen::reuse_port(address, config.threads, config.sharing)
                .with_context(|| format!("cannot listen on {address}"))
        };
        let own = bind(config.listen)?;
        let user_server = config.user_server.map(bind).transpose().context("--ocm-user-server-listen")?;
        Ok(Self { own, served: config.served, user_server: user_server.unwrap_or_default() })
    }

    /// The address of the gateway's own port.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.own[0].local_addr()?)
    }

    pub fn user_server_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        Ok(self.user_server.first().map(TcpListener::local_addr).transpose()?)
    }

    /// Passes each core its listeners.
    pub fn serve(self, threads: &mut Threads, needs: &Arc<RequestNeeds>, tls: &Arc<ServerConfig>) {
        let mut user_server = self.user_server.into_iter();
        for (core, listener) in self.own.into_iter().enumerate() {
            let server = Server::new(Arc::clone(needs), Arc::clone(tls), core, self.served);
            let beside = user_server.next().map(|listener| (listener, server.beside(Served::UserServer)));
            threads.serve(core, beside.into_iter().chain([(listener, server)]).collect());
        }
    }
}
