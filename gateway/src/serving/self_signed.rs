//! A serving certificate nobody had to ask for: a new authority, and one certificate below it, as Kubernetes' servers make them.
//!
//! The authority's key is thrown away. Its certificate follows the server's in the file, so that clients can be given that file as
//! the CA to trust.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use net::tls::server::KeyPairFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// A year, as Kubernetes' servers give themselves.
const VALIDITY: Duration = Duration::days(365);
/// Clocks of clients may be late.
const SKEW: Duration = Duration::hours(1);

/// PEM texts.
pub(super) struct Pair {
    certificates: String,
    private_key: String,
}

// === impl Pair ===

impl Pair {
    /// A certificate for `names`: DNS names and IP addresses; what is neither is left out.
    pub(super) fn generate(names: impl Iterator<Item = String>) -> Result<Self, rcgen::Error> {
        let authority_key = KeyPair::generate()?;
        let mut authority = params("cluster-gateway self-signed CA");
        authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let authority_certificate = authority.self_signed(&authority_key)?;

        let key = KeyPair::generate()?;
        let names: Vec<_> = names.filter(|name| CertificateParams::new([name.clone()]).is_ok()).collect();
        let mut server = params("cluster-gateway");
        server.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        server.is_ca = IsCa::ExplicitNoCa;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        server.use_authority_key_identifier_extension = true;
        let certificate = server.signed_by(&key, &Issuer::new(authority, authority_key))?;
        Ok(Self {
            certificates: format!("{}{}", certificate.pem(), authority_certificate.pem()),
            private_key: key.serialize_pem(),
        })
    }

    /// Writes both files, and their directory if need be. The key comes first: without a certificate it is no pair yet.
    pub(super) fn write(&self, files: &KeyPairFiles) -> io::Result<()> {
        if let Some(directory) = files.certificate.parent() {
            DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        }
        write(&files.private_key, &self.private_key, 0o600)?;
        write(&files.certificate, &self.certificates, 0o644)
    }
}

fn params(common_name: &str) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (now - SKEW, now + VALIDITY);
    params
}

fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    // Nobody's file is written over.
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(text.as_bytes())
}
