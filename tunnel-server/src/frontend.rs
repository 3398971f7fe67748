//! Listeners for gateways and kube-apiservers: mTLS with a CA of its own, and a Unix socket.
//!
//! Clients use HTTP/2 with many streams, or HTTP/1.1 with one. ALPN chooses between them over TLS;
//! on the Unix socket the client's first bytes show the protocol. A frontend may ask for any stream
//! to any cluster, so frontends and agents have different CAs.

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

/// The running listeners. A drop closes them and does not touch connections.
#[derive(Debug)]
pub struct Frontends {
    address: Option<SocketAddr>,
    uds: Option<PathBuf>,
    drain: Drain,
    /// Tasks that accept connections and follow files.
    _workers: JoinSet<()>,
}

/// Permits for connections, which both listeners share.
#[derive(Debug, Clone)]
struct Permits(Arc<Semaphore>);

// === impl Frontends ===

impl Frontends {
    /// Binds and starts the listeners in `config`.
    pub fn start(config: &FrontendConfig, shared: Shared, runtime: &Handle) -> anyhow::Result<Self> {
        let _entered = runtime.enter();
        let mut workers = JoinSet::new();
        let permits = Permits(Arc::new(Semaphore::new(shared.limits.frontends)));
        let (mut address, drain) = (None, shared.drain.clone());
        if let Some(config) = &config.tls {
            let listener = tls::Listener::bind(config, shared.clone(), permits.clone(), &mut workers)
                .with_context(|| format!("the frontends' listener {}", config.listen))?;
            address = Some(listener.address()?);
            shared.certificates.watch(Arc::clone(listener.certificate()) as _);
            workers.spawn(listener.run());
        }
        if let Some(path) = &config.uds {
            let listener = uds::Listener::bind(path, shared, permits)
                .with_context(|| format!("the frontends' Unix socket {}", path.display()))?;
            workers.spawn(listener.run());
        }
        Ok(Self { address, uds: config.uds.clone(), drain, _workers: workers })
    }

    /// The mTLS listener, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The Unix socket, if there is one.
    pub fn uds(&self) -> Option<&Path> {
        self.uds.as_deref()
    }

    /// Accepts no new connections, and asks frontends to use another server: GOAWAY, and 503 for a
    /// new `CONNECT`. Open streams continue until they end or the shared drain's deadline resets
    /// them.
    pub fn drain(&self) {
        self.drain.start();
    }
}

// === impl Permits ===

impl Permits {
    /// Waits while all permits are taken.
    async fn enter(&self) -> OwnedSemaphorePermit {
        Arc::clone(&self.0).acquire_owned().await.expect("never closed")
    }
}

#[cfg(test)]
mod tests;
