//! The expiry of certificates in use, for warnings.
//!
//! Only the first certificate of a chain counts, as in cert-manager and kubelets: the rest may have
//! a root, or a cross-signed one whose expiry has no effect (as Let's Encrypt served for years).

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustls_pki_types::CertificateDer;

use super::keypair;

/// A file whose certificate is presented to peers, and that certificate's `notAfter` (RFC 5280
/// §4.1.2.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    pub file: PathBuf,
    pub at: SystemTime,
}

/// Presents certificates from files to its peers.
pub trait InUse: fmt::Debug + Send + Sync {
    /// The expiry of the certificates in use: for a file that was changed and not reloaded yet, or
    /// rejected, still the former one.
    fn ends(&self) -> Vec<End>;
}

/// The expiry of one certificate. `None` if it cannot be read.
pub fn of(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let seconds = u64::try_from(certificate.validity().not_after.timestamp()).unwrap_or(0);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

// === impl End ===

impl End {
    /// The expiry of the first certificate in `pem`, the contents of `file`.
    pub fn in_pem(file: &Path, pem: &[u8]) -> Option<Self> {
        let at = of(keypair::certificates(pem).ok()?.first()?)?;
        Some(Self { file: file.to_owned(), at })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kit::pki::{Authority, Issued, Leaf};

    use super::*;
    use crate::tls::server::{KeyPairFiles, ServingCertificate};

    fn days(end: SystemTime) -> u64 {
        end.duration_since(SystemTime::now()).unwrap().as_secs().div_ceil(24 * 60 * 60)
    }

    #[test]
    fn the_end_is_that_of_the_pair_in_use() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let files = KeyPairFiles { certificate: path("tls.crt"), private_key: path("tls.key") };
        let authority = Authority::new("ca");
        let issue = |days| authority.issue(&Leaf::server("a").valid(time::Duration::ZERO, time::Duration::days(days)));
        // The root that follows expires later.
        let write = |issued: &Issued| {
            fs::write(&files.certificate, format!("{}{}", issued.chain_pem, authority.root_pem())).unwrap();
            fs::write(&files.private_key, &issued.key_pem).unwrap();
        };
        write(&issue(2));
        let serving = ServingCertificate::load(files.clone()).unwrap();
        let told = || serving.ends().into_iter().map(|end| (end.file, days(end.at))).collect::<Vec<_>>();
        assert_eq!(told(), [(files.certificate.clone(), 2)]);
        write(&issue(9));
        assert_eq!(told(), [(files.certificate.clone(), 2)], "not in use yet");
        assert!(serving.reload().unwrap());
        assert_eq!(told(), [(files.certificate.clone(), 9)]);
        fs::write(&files.certificate, issue(20).chain_pem).unwrap();
        serving.reload().unwrap_err();
        assert_eq!(told(), [(files.certificate.clone(), 9)], "it has no key");
    }
}
