//! Creates a self-signed serving certificate: a new CA, and one certificate below it, as
//! Kubernetes' servers create them.
//!
//! The CA's key is discarded. Its certificate follows the server's in the file, so that clients can
//! use that file as the CA to trust. Files appear complete or not at all, the key first, and none
//! is ever overwritten: a start that ends between the two leaves a key, for which the next start
//! creates the certificate.

use std::fs::{DirBuilder, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use net::tls::server::KeyPairFiles;
use net::words;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// A year, as for Kubernetes' servers.
const VALIDITY: Duration = Duration::days(365);
/// Clients' clocks may be behind.
const SKEW: Duration = Duration::hours(1);

/// Why no pair was created. Texts contain no key material.
#[derive(Debug, thiserror::Error)]
pub(super) enum MakeError {
    #[error("cannot write {}: {}", path.display(), words::io(.source))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {}", path.display(), words::io(.source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} has no certificate and is not a usable private key: remove it", .0.display())]
    NoKey(PathBuf),
    #[error("cannot create a certificate: {0}")]
    Generate(#[from] rcgen::Error),
}

/// Creates a key and a certificate for it.
pub(super) fn make(files: &KeyPairFiles, names: impl Iterator<Item = String>) -> Result<(), MakeError> {
    let key = KeyPair::generate()?;
    write(&files.private_key, &key.serialize_pem(), 0o600)?;
    write(&files.certificate, &certificates(&key, names)?, 0o644)
}

/// Creates a certificate for the existing key.
pub(super) fn finish(files: &KeyPairFiles, names: impl Iterator<Item = String>) -> Result<(), MakeError> {
    let path = || files.private_key.clone();
    let pem = std::fs::read_to_string(&files.private_key).map_err(|source| MakeError::Read { path: path(), source })?;
    let key = KeyPair::from_pem(&pem).map_err(|_| MakeError::NoKey(path()))?;
    write(&files.certificate, &certificates(&key, names)?, 0o644)
}

/// PEM of a certificate for `names` (DNS names and IP addresses; others are left out), followed by
/// its CA's.
fn certificates(key: &KeyPair, names: impl Iterator<Item = String>) -> Result<String, rcgen::Error> {
    let authority_key = KeyPair::generate()?;
    let mut authority = params("cluster-gateway self-signed CA");
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_certificate = authority.self_signed(&authority_key)?;

    let names: Vec<_> = names.filter(|name| CertificateParams::new([name.clone()]).is_ok()).collect();
    let mut server = params("cluster-gateway");
    server.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
    server.is_ca = IsCa::ExplicitNoCa;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let certificate = server.signed_by(key, &Issuer::new(authority, authority_key))?;
    Ok(format!("{}{}", certificate.pem(), authority_certificate.pem()))
}

fn params(common_name: &str) -> CertificateParams {
    let now = OffsetDateTime::now_utc();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, common_name);
    (params.not_before, params.not_after) = (now - SKEW, now + VALIDITY);
    params
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), MakeError> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let written = || {
        DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
        // Under a temporary name, which is removed if anything fails: a file with its final name is
        // complete, even after a crash.
        let permissions = Permissions::from_mode(mode);
        let mut file =
            tempfile::Builder::new().prefix(".apiserver-").permissions(permissions).tempfile_in(directory)?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        // No existing file is overwritten.
        file.persist_noclobber(path).map_err(|error| error.error)
    };
    written().map(drop).map_err(|source| MakeError::Write { path: path.to_owned(), source })
}
