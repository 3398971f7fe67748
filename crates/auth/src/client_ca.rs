//! Accepts any client with a certificate of a CA in a file, for listeners without users and
//! permissions.
//!
//! The file is followed. Connections outlive its changes, so a peer can be judged again with each
//! of its requests. Verdicts are remembered with the peer, like those on users' certificates.

use std::path::Path;
use std::sync::Arc;

use net::follow::{File, LONGEST};
use net::tls::server::ClientAdmission;
use rustls_pki_types::CertificateDer;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::assembly::BuildError;
use crate::ca_bundle::CaBundle;
use crate::clock::Clock;
use crate::peer::{Peer, Verdict};
use crate::trust::Trust;

/// See the module's text. A drop ends the task that follows the file.
#[derive(Debug)]
pub struct ClientCa {
    trust: Arc<Trust>,
    clock: Clock,
    _follower: JoinSet<()>,
}

// === impl ClientCa ===

impl ClientCa {
    /// Reads `path` and follows it on `runtime`. An invalid file is logged, and the last valid one
    /// stays in force; then `failed` is called, once per cause.
    pub fn open(path: &Path, runtime: &Handle, failed: impl Fn() + Send + 'static) -> Result<Arc<Self>, BuildError> {
        let (file, pem) =
            File::open(path, LONGEST).map_err(|source| BuildError::Read { path: path.to_owned(), source })?;
        let broken = |source| BuildError::CaBundle { path: path.to_owned(), source };
        let trust = Arc::new(Trust::default());
        trust.publish_clients(Arc::new(CaBundle::parse(&pem).map_err(broken)?));
        let live = Arc::clone(&trust);
        let mut follower = JoinSet::new();
        let apply = move |pem: &[u8]| CaBundle::parse(pem).map(|bundle| live.publish_clients(Arc::new(bundle)));
        follower.spawn_on(file.follow("CA of clients", apply, failed), runtime);
        Ok(Arc::new(Self { trust, clock: Clock::default(), _follower: follower }))
    }

    /// Checks whether the certificate of `peer` is valid now. Fails with the reason.
    pub fn judge(&self, peer: &Peer) -> Result<(), Arc<str>> {
        let now = self.clock.now();
        let clients = self.trust.clients();
        let bundle = clients.as_ref().expect("published before anybody could ask");
        let judged = Verdict::recall(&mut peer.memory().client, bundle.generation, now, || {
            let window = bundle.value.verify(peer.certificates(), now);
            window.map(|window| (None, window)).map_err(|error| Arc::from(error.to_string()))
        });
        judged.map(drop)
    }
}

impl ClientAdmission for ClientCa {
    fn admit(&self, chain: &[CertificateDer<'static>]) -> Result<(), String> {
        let clients = self.trust.clients();
        let bundle = clients.as_ref().expect("published before anybody could ask");
        bundle.value.verify(chain, self.clock.now()).map(drop).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests;
