//! Verifies peers' certificates: a judge decides whether one is accepted, and the signature check
//! proves that the peer has its key.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Judges servers' certificates.
pub(super) trait ServerJudge: Send + Sync {
    fn judge(&self, shown: &PeerCertificate<'_>, name: &ServerName<'_>, ocsp: &[u8]) -> Result<(), Error>;
}

/// Judges clients' certificates.
pub(super) trait ClientJudge: Send + Sync {
    /// Whether a client must present one.
    const REQUIRED: bool;

    fn judge(&self, shown: &PeerCertificate<'_>) -> Result<(), Error>;
}

/// What a peer presents.
pub(super) struct PeerCertificate<'a> {
    pub leaf: &'a CertificateDer<'a>,
    pub intermediates: &'a [CertificateDer<'a>],
    pub now: UnixTime,
}

/// The judge, and the provider's signature checks.
pub(super) struct Verifier<J> {
    pub judge: J,
    pub provider: Arc<CryptoProvider>,
}

/// Accepts any peer.
pub(super) struct AcceptAny;

impl ServerJudge for AcceptAny {
    fn judge(&self, _: &PeerCertificate<'_>, _: &ServerName<'_>, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }
}

impl ClientJudge for AcceptAny {
    const REQUIRED: bool = false;

    fn judge(&self, _: &PeerCertificate<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// The methods of both traits of rustls.
macro_rules! signatures {
    () => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls12_signature(message, certificate, signature, algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let algorithms = &self.provider.signature_verification_algorithms;
            verify_tls13_signature(message, certificate, signature, algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.provider.signature_verification_algorithms.supported_schemes()
        }
    };
}

impl<J: ServerJudge> ServerCertVerifier for Verifier<J> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let judged = self.judge.judge(&PeerCertificate { leaf, intermediates, now }, name, ocsp);
        judged.map(|()| ServerCertVerified::assertion())
    }

    signatures!();
}

impl<J: ClientJudge> ClientCertVerifier for Verifier<J> {
    /// An empty list, because Go's clients present a certificate only if it is empty or names their
    /// issuer.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn client_auth_mandatory(&self) -> bool {
        J::REQUIRED
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let judged = self.judge.judge(&PeerCertificate { leaf, intermediates, now });
        judged.map(|()| ClientCertVerified::assertion())
    }

    signatures!();
}

impl<J> fmt::Debug for Verifier<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(..)")
    }
}
