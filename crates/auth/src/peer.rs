//! The other end of an accepted connection, and the remembered judgement of its certificate.
//!
//! A connection outlives a rotation of the hub's CAs, so certificates are judged with every request
//! by the current bundle. The verdict is remembered here with the bundle's generation and its time
//! of validity, so that the next judgement only compares numbers.

mod memory;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustls_pki_types::CertificateDer;

pub(crate) use self::memory::{Memory, Verdict};

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
