//! Refuses clients that are not admitted during the handshake.
//!
//! Sessions are not resumed: a resumed session skips the certificate, and would admit clients of
//! removed CAs.

use std::sync::Arc;

use rustls::server::{NoServerSessionStorage, ResolvesServerCert};
use rustls::{CertificateError, OtherError, ServerConfig};
use rustls_pki_types::CertificateDer;

use crate::tls::policy::Policy;
use crate::tls::verifier::{ClientJudge, PeerCertificate};

/// Judges the certificates of connecting clients.
pub trait ClientAdmission: std::fmt::Debug + Send + Sync {
    /// Checks whether the holder of the key of the first certificate in `chain` may connect now.
    /// Fails with the reason.
    fn admit(&self, chain: &[CertificateDer<'static>]) -> Result<(), String>;
}

struct Admission(Arc<dyn ClientAdmission>);

#[derive(Debug, thiserror::Error)]
#[error("client certificate refused: {0}")]
struct Refused(String);

/// The same as [`config`](super::config), but only for clients that `doorkeeper` admits. Others get
/// an alert.
pub fn config_admitting(
    certificates: Arc<dyn ResolvesServerCert>,
    policy: &Policy,
    doorkeeper: Arc<dyn ClientAdmission>,
) -> Arc<ServerConfig> {
    let mut config = super::build(certificates, policy, Admission(doorkeeper));
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

// === impl Admission ===

impl ClientJudge for Admission {
    const REQUIRED: bool = true;

    fn judge(&self, shown: &PeerCertificate<'_>) -> Result<(), rustls::Error> {
        let chain = std::iter::once(shown.leaf).chain(shown.intermediates);
        let chain: Vec<_> = chain.map(|der| der.clone().into_owned()).collect();
        let refused = |why| CertificateError::Other(OtherError(Arc::new(Refused(why)))).into();
        self.0.admit(&chain).map_err(refused)
    }
}
