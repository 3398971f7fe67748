//! Where gateways and kube-apiservers come in: mTLS with a CA of its own, and a Unix socket.
//!
//! HTTP/2 carries many streams and HTTP/1.1 one; which of them a client speaks is agreed by ALPN
//! over TLS, and seen from its first bytes on the Unix socket. A frontend may ask for any stream to
//! any cluster, so its CA is not the agents'.

mod connection;
mod socket_file;
mod tls;
mod uds;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use net::drain::Drain;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::args::FrontendConfig;
use crate::shared::Shared;

/// The running listeners. Dropping it ends them, and leaves connections alone.
#[derive(Debug)]
pub struct Frontends {
    address: Option<SocketAddr>,
    uds: Option<PathBuf>,
    drain: Drain,
    /// They accept, and follow files.
    _workers: JoinSet<()>,
}

/// What both listeners have: connections that are left to accept.
#[derive(Debug, Clone)]
struct Room(Arc<Semaphore>);

// === impl Frontends ===

impl Frontends {
    /// Binds and starts what `config` asks for.
    pub fn start(config: &FrontendConfig, shared: Shared, runtime: &Handle) -> anyhow::Result<Self> {
        let _entered = runtime.enter();
        let mut workers = JoinSet::new();
        let room = Room(Arc::new(Semaphore::new(shared.limits.frontends)));
        let (mut address, drain) = (None, shared.drain.clone());
        if let Some(config) = &config.tls {
            let listener = tls::Listener::bind(config, shared.clone(), room.clone(), &mut workers)
                .with_context(|| format!("the frontends' listener {}", config.listen))?;
            address = Some(listener.address()?);
            shared.certificates.watch(Arc::clone(listener.certificate()) as _);
            workers.spawn(listener.run());
        }
        if let Some(path) = &config.uds {
            let listener = uds::Listener::bind(path, shared, room)
                .with_context(|| format!("the frontends' Unix socket {}", path.display()))?;
            workers.spawn(listener.run());
        }
        Ok(Self { address, uds: config.uds.clone(), drain, _workers: workers })
    }

    /// Where frontends are accepted over mTLS, if they are.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Where frontends are accepted over a Unix socket, if they are.
    pub fn uds(&self) -> Option<&Path> {
        self.uds.as_deref()
    }

    /// Accepts nobody from now on, and asks those who are there to go on elsewhere: GOAWAY, and 503
    /// for a new `CONNECT`. Their streams go on; the shared drain's deadline ends what is left.
    pub fn drain(&self) {
        self.drain.start();
    }
}

// === impl Room ===

impl Room {
    /// Waits at the limit.
    async fn enter(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0).acquire_owned().await.expect("never closed")
    }
}

#[cfg(test)]
mod tests;
