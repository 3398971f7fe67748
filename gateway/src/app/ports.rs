//! The ports of a gateway: its own, and one for members alone where that is asked for.

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

/// Bound, a listener for each core, and not yet served.
pub struct Ports {
    own: Vec<TcpListener>,
    served: Served,
    /// As Open Cluster Management's user server; empty: nowhere.
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

    /// The gateway's own.
    pub fn address(&self) -> anyhow::Result<SocketAddr> {
        Ok(self.own[0].local_addr()?)
    }

    pub fn user_server_address(&self) -> anyhow::Result<Option<SocketAddr>> {
        Ok(self.user_server.first().map(TcpListener::local_addr).transpose()?)
    }

    /// Hands each core its own.
    pub fn serve(self, threads: &mut Threads, needs: &Arc<RequestNeeds>, tls: &Arc<ServerConfig>) {
        let mut user_server = self.user_server.into_iter();
        for (core, listener) in self.own.into_iter().enumerate() {
            let server = Server::new(Arc::clone(needs), Arc::clone(tls), core, self.served);
            let beside = user_server.next().map(|listener| (listener, server.beside(Served::UserServer)));
            threads.serve(core, beside.into_iter().chain([(listener, server)]).collect());
        }
    }
}
