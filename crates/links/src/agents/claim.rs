//! An agent's registration and its credentials. Judged at the registration, and at each recheck of
//! the link.

use std::fmt;
use std::hash::BuildHasher;
use std::net::SocketAddr;

use auth::Peer;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use rustls_pki_types::CertificateDer;
use tunnel::register::Registration;

/// The headers contain the agent's token, so they are never printed.
pub struct Claim {
    pub registration: Registration,
    pub peer: Peer,
    /// The same peer for the hub's authority, which remembers its own results.
    pub peer_of_hub: Peer,
    /// Whether it has a certificate and no token.
    pub is_by_certificate: bool,
    /// Only `Authorization`: no other header may name or impersonate a user here.
    credentials: HeaderMap,
}

// === impl Claim ===

impl Claim {
    pub fn new(
        registration: Registration,
        headers: &HeaderMap,
        address: SocketAddr,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Self {
        let mut credentials = HeaderMap::new();
        for value in headers.get_all(AUTHORIZATION) {
            let mut value = value.clone();
            value.set_sensitive(true);
            credentials.append(AUTHORIZATION, value);
        }
        let is_by_certificate = credentials.is_empty() && !certificates.is_empty();
        let peer_of_hub = Peer::new(address, certificates.clone()).without_front_proxy();
        Self { registration, peer: Peer::new(address, certificates), peer_of_hub, is_by_certificate, credentials }
    }

    /// A hash of its token, or of its certificate; none: it shows neither. What is written around a
    /// token makes no other of it.
    pub fn credential(&self, hasher: &impl BuildHasher) -> Option<u64> {
        let token = self.credentials.get(AUTHORIZATION).map(|value| {
            let mut words = value.as_bytes().trim_ascii().split(|byte| *byte == b' ');
            words.nth(1).unwrap_or_default()
        });
        let certificate = || self.peer.certificates().first().map(AsRef::as_ref);
        token.or_else(certificate).map(|credential| hasher.hash_one(credential))
    }

    /// A copy, for authentication to consume.
    pub fn credentials(&self) -> HeaderMap {
        self.credentials.clone()
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claim").field("registration", &self.registration).finish_non_exhaustive()
    }
}
