//! A throw-away PKI: authorities that issue certificates with exactly the property a test is about.
//!
//! Certificates are ECDSA P-256 (fast to make, accepted by every Kubernetes component) unless RSA
//! is asked for. Names come from the caller and nothing else, so two runs differ in keys and dates
//! only. Nothing here touches rustls's process-wide provider: aws-lc-rs is always given explicitly.

mod der;
mod leaf;
mod tls;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use time::{Duration, OffsetDateTime};

pub use self::leaf::{Leaf, Usage};
pub use self::tls::{ALPN_BOTH, ALPN_H1, ALPN_H2, ClientAuth, Trust, client_config, provider, server_config};

/// Bytes of base64 on one line of a PEM file (RFC 7468 section 2).
const PEM_LINE: usize = 64;

/// A certificate authority, root or intermediate, that can issue leaves and further authorities.
#[derive(Debug)]
pub struct Authority {
    params: CertificateParams,
    key: KeyPair,
    certificate_der: CertificateDer<'static>,
    /// This authority's certificate and those above it without the root: an end entity sends these
    /// after its own.
    intermediates: Vec<CertificateDer<'static>>,
    root_der: CertificateDer<'static>,
}

/// A certificate with its private key, in every format a test needs.
#[derive(Debug)]
pub struct Issued {
    /// The certificate alone, PEM.
    pub certificate_pem: String,
    /// The private key, PKCS#8 PEM.
    pub key_pem: String,
    /// The certificate followed by the intermediates below the root, PEM: the content of `tls.crt`.
    pub chain_pem: String,
    /// The certificate alone, DER.
    pub certificate_der: CertificateDer<'static>,
    /// The private key, PKCS#8 DER.
    pub key_der: PrivateKeyDer<'static>,
    /// As `chain_pem`, DER.
    pub chain_der: Vec<CertificateDer<'static>>,
}

/// The files written by [`Issued::write_to`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemFiles {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PKCS#8 PEM, mode 0600.
    pub key: PathBuf,
}

// === impl Authority ===

impl Authority {
    /// A self-signed root, valid for ten years from yesterday.
    pub fn new(common_name: &str) -> Self {
        let params = authority_params(common_name);
        let key = KeyPair::generate().expect("the system has randomness");
        let certificate = params.self_signed(&key).expect("the parameters are complete");
        let der = certificate.der().clone();
        Self { params, key, certificate_der: der.clone(), intermediates: Vec::new(), root_der: der }
    }

    /// An authority below this one. Chains that it issues carry its certificate.
    #[must_use]
    pub fn intermediate(&self, common_name: &str) -> Self {
        let params = authority_params(common_name);
        let key = KeyPair::generate().expect("the system has randomness");
        let certificate = params.signed_by(&key, &self.issuer()).expect("the parameters are complete");
        let der = certificate.der().clone();
        let mut intermediates = vec![der.clone()];
        intermediates.extend(self.intermediates.iter().cloned());
        Self { params, key, certificate_der: der, intermediates, root_der: self.root_der.clone() }
    }

    /// Issues a certificate as `leaf` describes.
    pub fn issue(&self, leaf: &Leaf) -> Issued {
        let key = leaf.generate_key();
        let params = leaf.params(OffsetDateTime::now_utc());
        let template = params.signed_by(&key, &self.issuer()).expect("the parameters are complete");
        // rcgen keeps one value per attribute type, but every Kubernetes group is an O of its own.
        let certificate = der::replace_subject(template.der(), &leaf.subject_der(), &self.key);
        Issued::new(certificate, &key, &self.intermediates)
    }

    /// This authority's certificate, PEM.
    pub fn certificate_pem(&self) -> String {
        pem("CERTIFICATE", &self.certificate_der)
    }

    /// This authority's certificate, DER.
    pub fn certificate_der(&self) -> &CertificateDer<'static> {
        &self.certificate_der
    }

    /// The root above this authority (itself, for a root), PEM: a peer has to trust it.
    pub fn root_pem(&self) -> String {
        pem("CERTIFICATE", &self.root_der)
    }

    /// This authority's private key, PKCS#8 PEM, for programs that sign by themselves.
    pub fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// A store that trusts the root above this authority and nothing else.
    pub fn root_store(&self) -> RootCertStore {
        root_store([&self.root_der])
    }

    /// Writes the root certificate as `<stem>.crt` into `directory`.
    pub fn write_to(&self, directory: &Path, stem: &str) -> std::io::Result<PathBuf> {
        let path = directory.join(format!("{stem}.crt"));
        std::fs::write(&path, self.root_pem())?;
        Ok(path)
    }

    fn issuer(&self) -> Issuer<'_, &KeyPair> {
        Issuer::from_params(&self.params, &self.key)
    }
}

// === impl Issued ===

impl Issued {
    fn new(certificate: CertificateDer<'static>, key: &KeyPair, intermediates: &[CertificateDer<'static>]) -> Self {
        let mut chain_der = vec![certificate.clone()];
        chain_der.extend(intermediates.iter().cloned());
        Self {
            certificate_pem: pem("CERTIFICATE", &certificate),
            key_pem: key.serialize_pem(),
            chain_pem: chain_der.iter().map(|der| pem("CERTIFICATE", der)).collect(),
            certificate_der: certificate,
            key_der: PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            chain_der,
        }
    }

    /// Writes `<stem>.crt` (the chain) and `<stem>.key` (mode 0600) into `directory`.
    pub fn write_to(&self, directory: &Path, stem: &str) -> std::io::Result<PemFiles> {
        let files =
            PemFiles { certificate: directory.join(format!("{stem}.crt")), key: directory.join(format!("{stem}.key")) };
        std::fs::write(&files.certificate, &self.chain_pem)?;
        std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&files.key)?
            .write_all(self.key_pem.as_bytes())?;
        Ok(files)
    }
}

/// A serving certificate that is its own root with `CA:TRUE`, as `openssl req -x509` makes them by
/// default.
///
/// Go accepts it when it is given as the CA; rustls-webpki refuses it as an end entity
/// (`CaUsedAsEndEntity`).
pub fn self_signed_leaf(common_name: &str, names: &[&str]) -> Issued {
    let mut params = authority_params(common_name);
    params.key_usages.push(KeyUsagePurpose::DigitalSignature);
    params.subject_alt_names = leaf::subject_alt_names(names.iter().copied());
    let key = KeyPair::generate().expect("the system has randomness");
    let certificate = params.self_signed(&key).expect("the parameters are complete");
    Issued::new(certificate.der().clone(), &key, &[])
}

/// A store that trusts exactly `roots`.
pub fn root_store<'a>(roots: impl IntoIterator<Item = &'a CertificateDer<'static>>) -> RootCertStore {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root.clone()).expect("an authority of this kit is a valid root");
    }
    store
}

/// DER as PEM (RFC 7468) under `label`.
pub fn pem(label: &str, der: &[u8]) -> String {
    let encoded = base64::engine::general_purpose::STANDARD.encode(der);
    let lines: Vec<&str> =
        encoded.as_bytes().chunks(PEM_LINE).map(|line| std::str::from_utf8(line).expect("base64 is ASCII")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

fn authority_params(common_name: &str) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = now - Duration::days(1);
    params.not_after = now + Duration::days(3650);
    params
}

#[cfg(test)]
mod tests;
