//! Handshakes that fail for whoever is not admitted.
//!
//! Sessions are not resumed: a resumed one skips the certificate, and would let in who was admitted under authorities that are gone.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, OtherError, ServerConfig, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::Signatures;
use crate::tls::policy::Policy;

/// Judges the certificates of clients that want to connect.
pub trait Doorkeeper: std::fmt::Debug + Send + Sync {
    /// Whether whoever holds the key of the first certificate of `chain` may connect now; if not, why.
    fn admit(&self, chain: &[CertificateDer<'static>]) -> Result<(), String>;
}

#[derive(Debug)]
struct Admission {
    doorkeeper: Arc<dyn Doorkeeper>,
    signatures: Signatures,
}

#[derive(Debug, thiserror::Error)]
#[error("client certificate refused: {0}")]
struct Refused(String);

/// As [`config`](super::config), for clients that `doorkeeper` admits only. Others get an alert.
pub fn config_admitting(
    certificates: Arc<dyn ResolvesServerCert>,
    policy: &Policy,
    doorkeeper: Arc<dyn Doorkeeper>,
) -> Arc<ServerConfig> {
    let mut config = super::build(certificates, policy, |provider| {
        Arc::new(Admission { doorkeeper, signatures: Signatures(provider) })
    });
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

// === impl Admission ===

impl ClientCertVerifier for Admission {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let chain = std::iter::once(end_entity).chain(intermediates);
        let chain: Vec<_> = chain.map(|der| der.clone().into_owned()).collect();
        match self.doorkeeper.admit(&chain) {
            Ok(()) => Ok(ClientCertVerified::assertion()),
            Err(why) => Err(CertificateError::Other(OtherError(Arc::new(Refused(why)))).into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signatures.tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}
