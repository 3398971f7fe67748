//! The dialling side's files, re-read while running: CAs and, if used, our certificate.
//!
//! Connections keep the files with which they began. Each changed reading is a new generation, so
//! that a pool knows which of its connections have older files.

mod followed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;

use super::client::{self, Trust, TrustError};
use super::keypair::{KeyPair, KeyPairError};
use super::server::KeyPairFiles;
use crate::follow;
use crate::words;

pub use self::followed::FollowedClient;

/// The files of trust and identity.
#[derive(Debug, Clone, Default)]
pub struct ClientFiles {
    /// PEM bundle; without it, the system's roots.
    pub ca: Option<PathBuf>,
    /// Without it, no certificate is presented.
    pub identity: Option<KeyPairFiles>,
}

/// Why files cannot be used. Texts never contain key material.
#[derive(Debug, thiserror::Error)]
pub enum ClientFilesError {
    #[error("cannot read {path}: {}", words::io(.source))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {source}")]
    Trust { path: PathBuf, source: TrustError },
    #[error(transparent)]
    System(TrustError),
    #[error("{certificate} with {private_key}: {source}")]
    KeyPair { certificate: PathBuf, private_key: PathBuf, source: KeyPairError },
}

/// One reading of the files.
#[derive(Debug)]
pub struct Generation {
    /// Without ALPN, because each connection chooses its protocols.
    pub config: Arc<ClientConfig>,
    /// Increases with every change.
    pub number: u64,
    read: Contents,
}

#[derive(PartialEq, Eq)]
struct Contents {
    ca: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

// === impl ClientFiles ===

impl ClientFiles {
    /// All configured files.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.ca.iter().cloned().chain(self.identity.iter().flat_map(KeyPairFiles::paths)).collect()
    }

    fn read(&self) -> Result<Contents, ClientFilesError> {
        let read = |path: &Path| {
            follow::read(path, follow::LONGEST)
                .map_err(|source| ClientFilesError::Read { path: path.to_owned(), source })
        };
        let pair = |files: &KeyPairFiles| Ok((read(&files.certificate)?, read(&files.private_key)?));
        Ok(Contents {
            ca: self.ca.as_deref().map(read).transpose()?,
            identity: self.identity.as_ref().map(pair).transpose()?,
        })
    }

    fn config(&self, read: &Contents) -> Result<Arc<ClientConfig>, ClientFilesError> {
        let identity = match (&self.identity, &read.identity) {
            (Some(files), Some((certificate, key))) => {
                Some(KeyPair::from_pem(certificate, key).map_err(|source| ClientFilesError::KeyPair {
                    certificate: files.certificate.clone(),
                    private_key: files.private_key.clone(),
                    source,
                })?)
            }
            _ => None,
        };
        let trust = read.ca.as_deref().map_or(Trust::SystemRoots, Trust::Bundle);
        client::config(trust, identity.as_ref()).map_err(|source| match &self.ca {
            Some(path) => ClientFilesError::Trust { path: path.clone(), source },
            None => ClientFilesError::System(source),
        })
    }
}

/// Without the key.
impl std::fmt::Debug for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Contents(..)")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, KeyPair as Key};

    use super::*;

    fn pair(name: &str) -> (String, String) {
        let key = Key::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn changed_files_are_a_new_generation_and_broken_ones_are_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let write = |(certificate, key): (String, String)| {
            fs::write(path("ca.crt"), &certificate).unwrap();
            fs::write(path("tls.crt"), &certificate).unwrap();
            fs::write(path("tls.key"), key).unwrap();
        };
        write(pair("first"));
        let identity = Some(KeyPairFiles { certificate: path("tls.crt"), private_key: path("tls.key") });
        let files = ClientFiles { ca: Some(path("ca.crt")), identity };
        let client = FollowedClient::load(files).unwrap();
        assert_eq!((client.reload().unwrap(), client.current().number), (false, 0));
        fs::write(path("tls.key"), pair("other").1).unwrap();
        let error = client.reload().unwrap_err().to_string();
        assert!(error.contains("tls.key") && error.contains("does not fit"), "{error}");
        assert_eq!(client.current().number, 0, "what was good stays in use");
        write(pair("second"));
        assert_eq!((client.reload().unwrap(), client.current().number), (true, 1));
        fs::remove_file(path("ca.crt")).unwrap();
        assert!(client.reload().unwrap_err().to_string().contains("ca.crt"));
    }
}
