//! The main serving certificate: given, or made at the first start.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use net::tls::end;
use net::tls::server::KeyPairFiles;
use rustls_pki_types::CertificateDer;

use super::self_signed;

/// No other program renews a pair in the directory for created pairs, so the warning of its expiry
/// comes this early.
const SOON: Duration = Duration::from_hours(30 * 24);

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
    pub(super) fn is_made(&self) -> bool {
        matches!(self, Self::InDirectory { .. })
    }

    /// The pair for an error's text, with the remedy if that is not obvious.
    pub(super) fn describe(&self, files: &KeyPairFiles) -> String {
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
pub(super) fn warning(certificate: &CertificateDer<'_>, made: bool, now: SystemTime) -> Option<String> {
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
