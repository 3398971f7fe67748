//! The gateway's serving certificates: given, found, or created.

mod main_certificate;
mod self_signed;

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context as _;
use net::tls::policy::Policy;
use net::tls::server::{NamedFiles, ServingCertificate, ServingCertificates};

use self::main_certificate::warning;

pub use self::main_certificate::MainCertificate;

/// The configuration of serving TLS.
#[derive(Debug)]
pub struct Serving {
    pub main: MainCertificate,
    /// More certificates, for some names.
    pub named: Vec<NamedFiles>,
    pub policy: Policy,
}

// === impl Serving ===

impl Serving {
    /// Reads all certificates once, and creates the missing ones.
    pub fn load(&self) -> anyhow::Result<Arc<ServingCertificates>> {
        let files = self.main.files()?;
        let main = ServingCertificate::load(files.clone()).with_context(|| self.main.describe(&files))?;
        let certificate = main.current();
        if let Some(warning) = warning(certificate.end_entity_cert()?, self.main.is_made(), SystemTime::now()) {
            tracing::warn!(certificate = %files.certificate.display(), "{warning}");
        }
        ServingCertificates::load(main, self.named.clone()).context("--tls-sni-cert-key")
    }
}

#[cfg(test)]
mod tests;
