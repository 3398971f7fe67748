//! A bundle of CAs, and the check whether a certificate chain leads to one of them now.
//!
//! Verification follows kube-apiserver's use of Go's `x509.Certificate.Verify`: a path to a root of
//! the bundle through the presented intermediates, with every certificate valid at this moment
//! (also the root, which webpki alone would not check) and with the extended key usage
//! `clientAuth`. Host names are not compared, because a client certificate names a user.

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, TrustAnchor};
use webpki::{ALL_VERIFICATION_ALGS, EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::certificate;
use crate::clock::{Window, unix_time};

/// CAs that verify client certificates. Never empty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CaBundle {
    authorities: Vec<Authority>,
}

#[derive(Debug, PartialEq, Eq)]
struct Authority {
    anchor: TrustAnchor<'static>,
    validity: Window,
}

/// A CA bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CaBundleError {
    #[error("the CA bundle is not PEM: {0}")]
    Pem(#[source] rustls_pki_types::pem::Error),
    #[error("the CA bundle holds no certificate")]
    Empty,
    #[error("a certificate of the CA bundle is not usable as an authority")]
    Certificate,
}

/// Why a presented chain is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChainError {
    #[error("no certificate was presented")]
    Empty,
    #[error("{0}")]
    Certificate(#[from] certificate::CertificateError),
    #[error("the certificate does not verify: {0}")]
    Unverified(#[source] webpki::Error),
}

// === impl CaBundle ===

impl CaBundle {
    /// Parses a PEM bundle. Skips blocks other than certificates. One bad certificate makes the
    /// bundle invalid, as in `k8s.io/client-go/util/cert.ParseCertsPEM`.
    pub(crate) fn parse(pem: &[u8]) -> Result<Self, CaBundleError> {
        let mut authorities = Vec::new();
        for der in CertificateDer::pem_slice_iter(pem) {
            authorities.push(Authority::new(&der.map_err(CaBundleError::Pem)?)?);
        }
        if authorities.is_empty() { Err(CaBundleError::Empty) } else { Ok(Self { authorities }) }
    }

    /// Verifies `chain` (end entity first) at `now`, in seconds since the epoch. Returns the time
    /// for which the result is valid.
    pub(crate) fn verify(&self, chain: &[CertificateDer<'static>], now: u64) -> Result<Window, ChainError> {
        let [leaf, intermediates @ ..] = chain else { return Err(ChainError::Empty) };
        let current: Vec<&Authority> = self.authorities.iter().filter(|it| it.validity.contains(now)).collect();
        let anchors: Vec<TrustAnchor<'_>> = current.iter().map(|it| it.anchor.clone()).collect();
        let leaf = EndEntityCert::try_from(leaf).map_err(ChainError::Unverified)?;
        let path = leaf
            .verify_for_usage(
                ALL_VERIFICATION_ALGS,
                &anchors,
                intermediates,
                unix_time(now),
                KeyUsage::client_auth(),
                None,
                None,
            )
            .map_err(ChainError::Unverified)?;
        let mut window = certificate::validity(&leaf.der())?;
        for intermediate in path.intermediate_certificates() {
            window = window.intersection(certificate::validity(&intermediate.der())?);
        }
        let root = current.iter().find(|it| it.anchor == *path.anchor());
        Ok(root.map_or(window, |root| window.intersection(root.validity)))
    }
}

// === impl Authority ===

impl Authority {
    fn new(der: &CertificateDer<'_>) -> Result<Self, CaBundleError> {
        let anchor = anchor_from_trusted_cert(der).map_err(|_| CaBundleError::Certificate)?.to_owned();
        let validity = certificate::validity(der).map_err(|_| CaBundleError::Certificate)?;
        Ok(Self { anchor, validity })
    }
}
