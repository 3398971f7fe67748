//! A certificate chain and its private key in PEM. Those of a [`KeyPair`] belong together.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::words;

/// Why a certificate and key cannot be used. Texts never contain key material.
#[derive(Debug, thiserror::Error)]
pub enum KeyPairError {
    #[error("cannot read {path}: {}", words::io(.source))]
    Read { path: PathBuf, source: std::io::Error },
    #[error("no certificate found: expected PEM blocks labelled CERTIFICATE")]
    NoCertificate,
    #[error("malformed certificate PEM")]
    Certificate,
    #[error("no usable private key found: expected one unencrypted PEM block (PKCS#8, PKCS#1 or SEC1)")]
    PrivateKey,
    #[error("private key does not fit the certificate or its kind is not supported: {0}")]
    Mismatch(rustls::Error),
}

/// A chain, leaf first, with the key of the leaf.
#[derive(Clone)]
pub struct KeyPair(Arc<CertifiedKey>);

/// All certificates of a PEM text, in order.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, KeyPairError> {
    let certificates: Vec<_> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| KeyPairError::Certificate)?;
    if certificates.is_empty() { Err(KeyPairError::NoCertificate) } else { Ok(certificates) }
}

/// The chain, leaf first, and the key of two PEM texts. Does not look into them: the key may be of
/// another certificate. Fails with `Certificate`, `NoCertificate` or `PrivateKey`.
pub fn chain_and_key(
    certificate: &[u8],
    private_key: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), KeyPairError> {
    let chain = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(private_key).map_err(|_| KeyPairError::PrivateKey)?;
    Ok((chain, key))
}

// === impl KeyPair ===

impl KeyPair {
    pub fn from_pem(certificate: &[u8], private_key: &[u8]) -> Result<Self, KeyPairError> {
        let (chain, key) = chain_and_key(certificate, private_key)?;
        let pair = CertifiedKey::from_der(chain, key, &super::provider()).map_err(KeyPairError::Mismatch)?;
        Ok(Self(Arc::new(pair)))
    }

    pub fn certified_key(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0)
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(..)")
    }
}
