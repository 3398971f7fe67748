//! The serving side: requests a client certificate without requiring or judging one, and follows
//! its files.
//!
//! The authenticators judge client certificates per request, by CAs that change while connections
//! live. Here the handshake only proves that the peer has the key. The list of acceptable CAs is
//! empty, because Go clients offer a certificate only if the list is empty or names their issuer.
//!
//! For listeners that are only for clients with a certificate, [`config_admitting`] refuses others
//! in the handshake.

mod admission;
mod names;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

pub use self::admission::{ClientAdmission, config_admitting};
pub use self::names::{NamedFiles, ServingCertificates};
use super::end::{End, InUse};
use super::keypair::{KeyPair, KeyPairError};
use super::policy::Policy;
use super::verifier::{AcceptAny, ClientJudge, Verifier};
use crate::follow;

/// The files of the serving certificate and key.
#[derive(Debug, Clone)]
pub struct KeyPairFiles {
    pub certificate: PathBuf,
    pub private_key: PathBuf,
}

/// The certificate in use, replaced by [`ServingCertificate::follow`]. Open connections keep
/// theirs.
#[derive(Debug)]
pub struct ServingCertificate {
    files: KeyPairFiles,
    current: ArcSwap<Loaded>,
}

struct Loaded {
    pem: (Vec<u8>, Vec<u8>),
    key: Arc<CertifiedKey>,
}

/// A server configuration that presents what `certificates` chooses.
pub fn config(certificates: Arc<dyn ResolvesServerCert>, policy: &Policy) -> Arc<ServerConfig> {
    Arc::new(build(certificates, policy, AcceptAny))
}

fn build(
    certificates: Arc<dyn ResolvesServerCert>,
    policy: &Policy,
    judge: impl ClientJudge + 'static,
) -> ServerConfig {
    let mut provider = CryptoProvider::clone(&super::provider());
    provider.cipher_suites = policy.suites.to_vec();
    let provider = Arc::new(provider);
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&policy.versions())
        .expect("a policy always has suites of TLS 1.3")
        .with_client_cert_verifier(Arc::new(Verifier { judge, provider }))
        .with_cert_resolver(certificates);
    config.alpn_protocols = policy.alpn.iter().map(|name| name.to_vec()).collect();
    config
}

// === impl ServingCertificate ===

impl ServingCertificate {
    /// Reads the files once. Fails if they are no matching pair.
    pub fn load(files: KeyPairFiles) -> Result<Arc<Self>, KeyPairError> {
        let loaded = Loaded::read(&files)?;
        Ok(Arc::new(Self { files, current: ArcSwap::from_pointee(loaded) }))
    }

    /// Follows the files forever, like [`follow::follow`]. Calls `changed` when another pair is in
    /// use.
    pub async fn follow(self: Arc<Self>, changed: impl Fn() + Send + 'static, failed: impl Fn() + Send + 'static) {
        let files = self.files.paths().to_vec();
        let reload = move || {
            self.reload().inspect(|now| {
                if *now {
                    changed();
                }
            })
        };
        follow::follow("serving certificate", files, reload, failed).await;
    }

    /// The pair in use.
    pub fn current(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.current.load().key)
    }

    /// Reads the files. True if they have changed and are in use now.
    pub fn reload(&self) -> Result<bool, KeyPairError> {
        if self.files.read()? == self.current.load().pem {
            return Ok(false);
        }
        self.current.store(Arc::new(Loaded::read(&self.files)?));
        Ok(true)
    }
}

impl InUse for ServingCertificate {
    fn ends(&self) -> Vec<End> {
        End::in_pem(&self.files.certificate, &self.current.load().pem.0).into_iter().collect()
    }
}

impl ResolvesServerCert for ServingCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

// === impl KeyPairFiles ===

impl KeyPairFiles {
    /// Certificate, then key.
    pub fn paths(&self) -> [PathBuf; 2] {
        [self.certificate.clone(), self.private_key.clone()]
    }

    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), KeyPairError> {
        let read = |path: &PathBuf| {
            follow::read(path, follow::LONGEST).map_err(|source| KeyPairError::Read { path: path.clone(), source })
        };
        Ok((read(&self.certificate)?, read(&self.private_key)?))
    }
}

impl Loaded {
    fn read(files: &KeyPairFiles) -> Result<Self, KeyPairError> {
        let pem = files.read()?;
        let key = KeyPair::from_pem(&pem.0, &pem.1)?.certified_key();
        Ok(Self { pem, key })
    }
}

impl fmt::Debug for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loaded(..)")
    }
}
