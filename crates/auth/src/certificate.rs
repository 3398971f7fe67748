//! Reads the few fields of an X.509 certificate that identify its holder, like Go's `crypto/x509`.

use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::clock::Window;

/// Common name and organizations of a certificate's subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Empty if there is none.
    pub(crate) common_name: String,
    pub(crate) organizations: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("the certificate is not well-formed DER")]
    Malformed,
    /// If such an attribute were skipped, the caller would be another user than the issuer wrote.
    #[error("the certificate's subject has a name in an unsupported string type")]
    Name,
}

// === impl Subject ===

impl Subject {
    /// The last CN wins and every O counts, as in Go's `pkix.Name.FillFromRDNSequence`.
    pub(crate) fn parse(der: &[u8]) -> Result<Self, CertificateError> {
        let certificate = parse(der)?;
        let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
            attribute.as_str().map(str::to_owned).map_err(|_| CertificateError::Name)
        };
        let common_name = certificate.subject().iter_common_name().last().map(text).transpose()?.unwrap_or_default();
        let organizations = certificate.subject().iter_organization().map(text).collect::<Result<_, _>>()?;
        Ok(Self { common_name, organizations })
    }
}

/// `notBefore` and `notAfter`.
pub(crate) fn validity(der: &[u8]) -> Result<Window, CertificateError> {
    let certificate = parse(der)?;
    let seconds = |time: x509_parser::time::ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
    let validity = certificate.validity();
    Ok(Window { from: seconds(validity.not_before), until: seconds(validity.not_after) })
}

fn parse(der: &[u8]) -> Result<X509Certificate<'_>, CertificateError> {
    X509Certificate::from_der(der).map(|(_, certificate)| certificate).map_err(|_| CertificateError::Malformed)
}
