//! The other end of one accepted connection, and what is already known about its certificate.
//!
//! A connection outlives a rotation of the hub's authorities, so certificates are judged at every
//! request against the current bundle. The verdict is remembered here together with the bundle and
//! the time it holds for; that makes the repeated judgement a comparison of two numbers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustls_pki_types::CertificateDer;

use crate::clock::Window;
use crate::identity_headers::IdentityCache;
use crate::token_id::Latest;
use crate::user::User;

/// How long a certificate that did not verify is taken for bad before it is looked at again, in
/// seconds. Short enough that one which was not valid *yet* works soon after it becomes so.
const REFUSAL_SECONDS: u64 = 10;

/// The other end of an accepted connection. Made once per connection and handed to
/// [`Authenticator::authenticate`](crate::Authenticator::authenticate) with each of its requests.
///
/// The holder of the connection must have proved possession of the key of `certificates[0]` in its
/// TLS handshake; trust in the certificate itself is not required, it is judged here.
#[derive(Debug)]
pub struct Peer {
    address: SocketAddr,
    certificates: Vec<CertificateDer<'static>>,
    /// Its certificate may be the hub's front proxy's.
    may_be_front_proxy: bool,
    front_proxy: AtomicBool,
    memory: Mutex<Memory>,
}

/// What earlier requests of the connection found out.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) front_proxy: Option<Verdict<()>>,
    pub(crate) client: Option<Verdict<Option<Arc<User>>>>,
    pub(crate) identities: IdentityCache,
    pub(crate) token: Latest,
}

/// The outcome of judging a certificate, and for how long it holds.
#[derive(Debug)]
pub(crate) struct Verdict<T> {
    /// Of the snapshot it was judged by.
    generation: u64,
    window: Window,
    outcome: Result<T, Arc<str>>,
}

// === impl Peer ===

impl Peer {
    /// `certificates` is the chain the client presented, its own first; empty if it presented none.
    pub fn new(address: SocketAddr, certificates: Vec<CertificateDer<'static>>) -> Self {
        let (front_proxy, memory) = (AtomicBool::new(false), Mutex::default());
        Self { address, certificates, may_be_front_proxy: true, front_proxy, memory }
    }

    /// The same on a port to which no front proxy comes: no certificate there may speak for other
    /// users.
    #[must_use]
    pub fn without_front_proxy(self) -> Self {
        Self { may_be_front_proxy: false, ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether its certificate was found to be the hub's front proxy's when it was last looked at:
    /// by a request, or by [`Authenticator::recognize`](crate::Authenticator::recognize). `false`
    /// before.
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
    /// The remembered outcome if it was reached by snapshot `generation` and still holds at `now`;
    /// otherwise judges again.
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
