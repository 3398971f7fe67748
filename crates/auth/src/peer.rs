//! The other end of an accepted connection, and the remembered judgement of its certificate.
//!
//! A connection outlives a rotation of the hub's CAs, so certificates are judged with every request
//! by the current bundle. The verdict is remembered here with the bundle's generation and its time
//! of validity, so that the next judgement only compares numbers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustls_pki_types::CertificateDer;

use crate::clock::Window;
use crate::identity_headers::IdentityCache;
use crate::token_id::Latest;
use crate::user::User;

/// How long a failed verification is remembered, in seconds. Short, so that a certificate that was
/// not valid *yet* works soon after it becomes valid.
const REFUSAL_SECONDS: u64 = 10;

/// The other end of an accepted connection. Made once per connection, and passed to
/// [`Authenticator::authenticate`](crate::Authenticator::authenticate) with each of its requests.
///
/// The client must have proved possession of the key of `certificates[0]` in its TLS handshake. The
/// certificate itself need not be trusted yet, because it is judged here.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    certificates: Vec<CertificateDer<'static>>,
    /// Its certificate may be that of the hub's front proxy.
    may_be_front_proxy: bool,
    front_proxy: AtomicBool,
    memory: Mutex<Memory>,
}

/// Results of the connection's earlier requests.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) front_proxy: Option<Verdict<()>>,
    pub(crate) client: Option<Verdict<Option<Arc<User>>>>,
    pub(crate) identities: IdentityCache,
    pub(crate) token: Latest,
}

/// The verdict on a certificate, and its time of validity.
#[derive(Debug)]
pub(crate) struct Verdict<T> {
    /// Generation of the snapshot by which it was judged.
    generation: u64,
    window: Window,
    outcome: Result<T, Arc<str>>,
}

// === impl Peer ===

impl Peer {
    /// `certificates` is the client's chain, its own certificate first; empty if it presented none.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        let (front_proxy, memory) = (AtomicBool::new(false), Mutex::default());
        Self { address, certificates, may_be_front_proxy: true, front_proxy, memory }
    }

    /// The same on a port that no front proxy uses: no certificate there may name other users.
    #[must_use]
    pub fn without_front_proxy(self) -> Self {
        Self { may_be_front_proxy: false, ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether its certificate was the hub's front proxy's at the last check, by a request or by
    /// [`Authenticator::recognize`](crate::Authenticator::recognize). `false` before any check.
    pub fn is_front_proxy(&self) -> bool {
        self.front_proxy.load(Ordering::Relaxed)
    }

    pub(crate) fn may_be_front_proxy(&self) -> bool {
        self.may_be_front_proxy && !self.certificates.is_empty()
    }

    pub(crate) fn set_front_proxy(&self, verified: bool) {
        self.front_proxy.store(verified, Ordering::Relaxed);
    }

    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }
}

// === impl Verdict ===

impl<T: Clone> Verdict<T> {
    /// Returns the remembered outcome if it is from the snapshot `generation` and still valid at
    /// `now`. Otherwise judges again.
    pub(crate) fn recall(
        slot: &mut Option<Self>,
        generation: u64,
        now: u64,
        judge: impl FnOnce() -> Result<(T, Window), Arc<str>>,
    ) -> Result<T, Arc<str>> {
        if let Some(known) = slot
            && known.generation == generation
            && known.window.contains(now)
        {
            return known.outcome.clone();
        }
        let (window, outcome) = match judge() {
            Ok((value, window)) => (window, Ok(value)),
            Err(why) => (Window { from: now, until: now.saturating_add(REFUSAL_SECONDS) }, Err(why)),
        };
        *slot = Some(Self { generation, window, outcome: outcome.clone() });
        outcome
    }
}
