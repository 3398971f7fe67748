use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::*;

/// Writes a self-signed pair for `names` under the file name `stem`.
fn write(directory: &Path, stem: &str, names: &[&str]) -> KeyPairFiles {
    let names: Vec<_> = names.iter().map(ToString::to_string).collect();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    let files = KeyPairFiles {
        certificate: directory.join(format!("{stem}.crt")),
        private_key: directory.join(format!("{stem}.key")),
    };
    std::fs::write(&files.certificate, certificate.pem()).unwrap();
    std::fs::write(&files.private_key, key.serialize_pem()).unwrap();
    files
}

struct Served {
    directory: TempDir,
    certificates: Arc<ServingCertificates>,
}

impl Served {
    /// Pairs of (names in the certificate, names given with it).
    fn new(pairs: &[(&[&str], &[&str])]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let main = ServingCertificate::load(write(directory.path(), "main", &["main.example"])).unwrap();
        let named = pairs.iter().enumerate().map(|(number, (own, given))| NamedFiles {
            files: write(directory.path(), &number.to_string(), own),
            names: given.iter().map(ToString::to_string).collect(),
        });
        let certificates = ServingCertificates::load(main, named.collect()).unwrap();
        Self { directory, certificates }
    }

    /// The pair that a client asking for `name` gets.
    fn shown(&self, name: &str) -> Option<usize> {
        let key = self.certificates.named(name)?;
        let all = self.certificates.named.iter();
        all.map(|named| named.certificate.current()).position(|other| Arc::ptr_eq(&other, &key))
    }
}

#[test]
fn given_names_come_before_read_ones_earlier_pairs_before_later_and_whole_names_before_wildcards() {
    let served = Served::new(&[
        (&["a.example", "*.b.example"], &[]),
        (&["ignored.example"], &["a.example", "*.c.example"]),
        (&["a.example", "x.b.example", "*.c.example"], &[]),
    ]);
    assert_eq!(served.shown("A.example"), Some(1), "given");
    assert_eq!(served.shown("ignored.example"), None, "given names stand in place of the certificate's");
    assert_eq!(served.shown("x.b.example"), Some(2), "whole");
    assert_eq!(served.shown("y.b.example"), Some(0), "wildcard of a certificate");
    assert_eq!(served.shown("z.c.example"), Some(1), "wildcard given");
    assert_eq!(served.shown("y.y.b.example"), None, "one label");
    assert_eq!(served.shown("main.example"), None);
    assert_eq!(served.shown("example"), None);
}

#[tokio::test(start_paused = true)]
async fn new_files_bring_their_own_names() {
    let served = Served::new(&[(&["old.example"], &[])]);
    let following = tokio::spawn(Arc::clone(&served.certificates).follow());
    write(served.directory.path(), "0", &["new.example"]);
    tokio::time::sleep(2 * crate::follow::INTERVAL).await;
    assert_eq!((served.shown("old.example"), served.shown("new.example")), (None, Some(0)));
    following.abort();
}
