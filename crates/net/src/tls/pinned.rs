//! Certificates that are their own authority.
//!
//! `openssl req -x509` makes a certificate with `CA:TRUE` that development clusters both serve and hand out as their CA. webpki
//! refuses an authority as a server certificate; Go accepts it, and so do all Kubernetes clients. Here it is accepted if the bundle
//! holds exactly this certificate: that is stronger than a signature by it.

use std::sync::Arc;

use rustls::CertificateError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// webpki's verifier, and the bundle's certificates themselves.
#[derive(Debug)]
pub(super) struct OrPinned {
    pub webpki: Arc<WebPkiServerVerifier>,
    pub bundle: Vec<CertificateDer<'static>>,
}

// === impl OrPinned ===

impl OrPinned {
    /// webpki has checked the dates by the time it complains of this (`check_issuer_independent_properties`), but not the name.
    fn is_own_authority(&self, error: &rustls::Error, end_entity: &CertificateDer<'_>) -> bool {
        let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
        let reason = other.0.downcast_ref::<webpki::Error>();
        reason == Some(&webpki::Error::CaUsedAsEndEntity) && self.bundle.iter().any(|known| known == end_entity)
    }
}

impl ServerCertVerifier for OrPinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.webpki.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(error) if self.is_own_authority(&error, end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.webpki.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.webpki.supported_verify_schemes()
    }
}
