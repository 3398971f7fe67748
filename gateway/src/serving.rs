//! The gateway's serving certificates: given, found, or created.

mod self_signed;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use net::tls::end;
use net::tls::policy::Policy;
use net::tls::server::{KeyPairFiles, NamedFiles, ServingCertificate, ServingCertificates};
use rustls_pki_types::CertificateDer;

/// No other program renews a pair in the directory for created pairs, so the warning of its expiry
/// comes this early.
const SOON: Duration = Duration::from_hours(30 * 24);

/// The configuration of serving TLS.
#[derive(Debug)]
pub struct Serving {
    pub main: MainCertificate,
    /// More certificates, for some names.
    pub named: Vec<NamedFiles>,
    pub policy: Policy,
}

/// The certificate for clients that ask for no other one.
#[derive(Debug)]
pub enum MainCertificate {
    Given(KeyPairFiles),
    /// `apiserver.crt` and `apiserver.key` there, created for `names` if there is no certificate.
    InDirectory {
        directory: PathBuf,
        /// DNS names and IP addresses.
        names: Vec<String>,
    },
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

// === impl MainCertificate ===

impl MainCertificate {
    /// The files of certificate and key, which are created first if necessary.
    pub fn files(&self) -> anyhow::Result<KeyPairFiles> {
        match self {
            Self::Given(files) => Ok(files.clone()),
            Self::InDirectory { directory, names } => find_or_make(directory, names).with_context(|| {
                format!(
                    "no serving certificate in {}: give --tls-cert-file and --tls-private-key-file, or a writable \
                     --cert-dir",
                    directory.display()
                )
            }),
        }
    }

    /// Whether no other program renews it.
    fn is_made(&self) -> bool {
        matches!(self, Self::InDirectory { .. })
    }

    /// The pair for an error's text, with the remedy if that is not obvious.
    fn describe(&self, files: &KeyPairFiles) -> String {
        let (certificate, key) = (files.certificate.display(), files.private_key.display());
        match self {
            Self::Given(_) => "serving certificate".to_owned(),
            Self::InDirectory { .. } => {
                format!(
                    "serving certificate {certificate} with {key} (remove both files, and the gateway creates a new pair)"
                )
            }
        }
    }
}

fn find_or_make(directory: &Path, names: &[String]) -> anyhow::Result<KeyPairFiles> {
    let files =
        KeyPairFiles { certificate: directory.join("apiserver.crt"), private_key: directory.join("apiserver.key") };
    let (certificate, key) = (&files.certificate, &files.private_key);
    let names = names.iter().cloned().chain(host_name());
    match (exists(certificate)?, exists(key)?) {
        (true, true) => return Ok(files),
        (true, false) => anyhow::bail!("{} exists, but {} does not", certificate.display(), key.display()),
        (false, false) => self_signed::make(&files, names)?,
        (false, true) => self_signed::finish(&files, names)?,
    }
    tracing::warn!(
        certificate = %certificate.display(),
        "serving with a new self-signed certificate, which no hub trusts: \
         for production give --tls-cert-file and --tls-private-key-file"
    );
    Ok(files)
}

/// A warning about the expiry of `certificate`; `made` if it is in the directory for created pairs.
fn warning(certificate: &CertificateDer<'_>, made: bool, now: SystemTime) -> Option<String> {
    let at = end::of(certificate)?;
    let end = api::time::text(at);
    let left = at.duration_since(now);
    let renew = if made { "delete both files and restart, and the gateway creates a new pair" } else { "renew it" };
    match left {
        Err(_) => Some(format!("the serving certificate expired at {end}, and clients reject it: {renew}")),
        Ok(left) if made && left < SOON => Some(format!("the serving certificate expires at {end}: {renew}")),
        Ok(_) => None,
    }
}

fn exists(path: &Path) -> anyhow::Result<bool> {
    path.try_exists().with_context(|| format!("cannot look for {}", path.display()))
}

/// The name of this machine or pod.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?.trim().to_ascii_lowercase();
    (!name.is_empty() && name != "localhost").then_some(name)
}

#[cfg(test)]
mod tests;
