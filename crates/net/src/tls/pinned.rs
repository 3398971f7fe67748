//! Accepts certificates that are their own CA.
//!
//! `openssl req -x509` makes a certificate with `CA:TRUE`, which development clusters both serve
//! and distribute as their CA. webpki refuses a CA as a server certificate, but Go accepts it, and
//! so do all Kubernetes clients. Here it is accepted if the bundle contains exactly this
//! certificate, which is stronger than a signature by it.

use std::sync::Arc;

use rustls::CertificateError;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls_pki_types::{CertificateDer, ServerName};

use super::verifier::{PeerCertificate, ServerJudge};

/// webpki's verifier, and the bundle's certificates themselves.
pub(super) struct WebPkiOrPinned {
    pub webpki: Arc<WebPkiServerVerifier>,
    pub bundle: Vec<CertificateDer<'static>>,
}

// === impl WebPkiOrPinned ===

impl WebPkiOrPinned {
    /// webpki has checked the dates before it reports this error
    /// (`check_issuer_independent_properties`), but not the name.
    fn is_own_authority(&self, error: &rustls::Error, end_entity: &CertificateDer<'_>) -> bool {
        let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
        let reason = other.0.downcast_ref::<webpki::Error>();
        reason == Some(&webpki::Error::CaUsedAsEndEntity) && self.bundle.iter().any(|known| known == end_entity)
    }
}

impl ServerJudge for WebPkiOrPinned {
    fn judge(&self, shown: &PeerCertificate<'_>, name: &ServerName<'_>, ocsp: &[u8]) -> Result<(), rustls::Error> {
        let &PeerCertificate { leaf, intermediates, now } = shown;
        match self.webpki.verify_server_cert(leaf, intermediates, name, ocsp, now) {
            Err(error) if self.is_own_authority(&error, leaf) => {
                verify_server_name(&ParsedCertificate::try_from(leaf)?, name)
            }
            verified => verified.map(drop),
        }
    }
}
