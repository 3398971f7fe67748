//! A CA bundle: only PEM certificates, each usable as a trust anchor.
//!
//! The hub accepts any bytes as a bundle (`Cg==`, a line feed, is what installations start with),
//! and fails later, in every request. Many clients may read an APIService, so a private key beside
//! the certificates must not get into it.

use k8s_openapi::ByteString;
use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};

/// Certificates for `spec.caBundle`.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle(ByteString);

/// Why a text is no bundle. Never quotes the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotABundle {
    #[error("holds no PEM block labelled CERTIFICATE")]
    Empty,
    #[error("is not valid PEM")]
    Malformed,
    #[error("holds something else beside certificates, perhaps a private key: only certificates belong there")]
    Other,
    #[error("holds a certificate that cannot be parsed")]
    Certificate,
}

// === impl Bundle ===

impl Bundle {
    /// Checks `pem`, whose bytes are kept unchanged.
    pub fn parse(pem: &ByteString) -> Result<Self, NotABundle> {
        let mut roots = RootCertStore::empty();
        for block in <(SectionKind, Vec<u8>)>::pem_slice_iter(&pem.0) {
            let (kind, der) = block.map_err(|_| NotABundle::Malformed)?;
            if kind != SectionKind::Certificate {
                return Err(NotABundle::Other);
            }
            roots.add(CertificateDer::from(der)).map_err(|_| NotABundle::Certificate)?;
        }
        if roots.is_empty() { Err(NotABundle::Empty) } else { Ok(Self(pem.clone())) }
    }

    /// The bytes in Kubernetes' type.
    pub fn bytes(&self) -> &ByteString {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    fn parse(text: &str) -> Result<Bundle, NotABundle> {
        Bundle::parse(&ByteString(text.as_bytes().to_vec()))
    }

    #[test]
    fn certificates_are_kept_byte_for_byte() {
        let (one, two) = (Authority::new("one").root_pem(), Authority::new("two").root_pem());
        let text = format!("# ours\n{one}\n{two}");
        assert_eq!(parse(&text).unwrap().bytes().0, text.as_bytes());
    }

    #[test]
    fn the_placeholder_and_other_texts_are_refused() {
        assert_eq!(parse("\n"), Err(NotABundle::Empty));
        assert_eq!(parse("-----BEGIN CERTIFICATE-----\nAAAA"), Err(NotABundle::Malformed));
        let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(parse(no_certificate), Err(NotABundle::Certificate));
    }

    #[test]
    fn a_private_key_is_never_published() {
        let authority = Authority::new("ca");
        let key = authority.issue(&Leaf::server("gateway")).key_pem;
        assert_eq!(parse(&format!("{}{key}", authority.root_pem())), Err(NotABundle::Other));
    }
}
