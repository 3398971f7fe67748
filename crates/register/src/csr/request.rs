//! The request itself: PKCS #10 (RFC 2986) in PEM, parsed more strictly than by signers, so that
//! both read the same.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use x509_parser::certification_request::{X509CertificationRequest, X509CertificationRequestInfo};
use x509_parser::oid_registry::{
    OID_PKCS1_SHA256WITHRSA, OID_PKCS1_SHA384WITHRSA, OID_PKCS1_SHA512WITHRSA, OID_SIG_ECDSA_WITH_SHA256,
    OID_SIG_ECDSA_WITH_SHA384, OID_SIG_ED25519, OID_X509_COMMON_NAME, OID_X509_ORGANIZATION_NAME, Oid,
};
use x509_parser::prelude::FromDer as _;

const BEGIN: &str = "-----BEGIN CERTIFICATE REQUEST-----";
const END: &str = "-----END CERTIFICATE REQUEST-----";
/// Limit of the PEM, in bytes. An agent's takes 600, one with a key of RSA 4096 takes 1,800.
const MOST_BYTES: usize = 16 << 10;
/// No attributes ([0] IMPLICIT SET OF, RFC 2986 §4.1).
const NO_ATTRIBUTES: &[u8] = &[0xa0, 0];
/// One extensionRequest (RFC 2985 §5.4.2) without an extension in it, as the klusterlet writes it.
const NO_EXTENSIONS: &[u8] =
    &[0xa0, 17, 0x30, 15, 0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e, 0x31, 2, 0x30, 0];
/// Accepted signatures; RSA keys need 2,048 bits.
const ALGORITHMS: [Oid<'static>; 6] = [
    OID_SIG_ECDSA_WITH_SHA256,
    OID_SIG_ECDSA_WITH_SHA384,
    OID_SIG_ED25519,
    OID_PKCS1_SHA256WITHRSA,
    OID_PKCS1_SHA384WITHRSA,
    OID_PKCS1_SHA512WITHRSA,
];

/// The subject that a certificate would have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    pub common_name: String,
    /// In the order of the request.
    pub organizations: Vec<String>,
}

/// The fault in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("it is not the PEM of one CERTIFICATE REQUEST alone")]
    Pem,
    #[error("it is not DER of PKCS #10, or something follows it")]
    Der,
    #[error("its signature is not valid, or its key or algorithm is too weak")]
    Signature,
    #[error("it asks for extensions, such as further names, or has other attributes")]
    Extensions,
    #[error("its subject has other parts than one common name and organizations")]
    Subject,
}

/// The subject of the request in `pem`.
pub fn subject(pem: &[u8]) -> Result<Subject, Mistake> {
    let der = der(pem).ok_or(Mistake::Pem)?;
    let Ok(([], request)) = X509CertificationRequest::from_der(&der) else { return Err(Mistake::Der) };
    let algorithm = &request.signature_algorithm.algorithm;
    if !ALGORITHMS.contains(algorithm) || request.verify_signature().is_err() {
        return Err(Mistake::Signature);
    }
    let info = &request.certification_request_info;
    if !is_without_extensions(info) {
        return Err(Mistake::Extensions);
    }
    names(info).ok_or(Mistake::Subject)
}

/// Only white space may surround it, and it has no header (RFC 7468 §2 has none).
fn der(pem: &[u8]) -> Option<Vec<u8>> {
    if pem.len() > MOST_BYTES {
        return None;
    }
    let text = std::str::from_utf8(pem).ok()?.trim_ascii();
    let lines = text.strip_prefix(BEGIN)?.strip_suffix(END)?;
    let base64: String = lines.lines().map(str::trim_ascii).collect();
    STANDARD.decode(base64).ok()
}

/// Byte by byte: readers differ in what they skip within a set of attributes.
fn is_without_extensions(info: &X509CertificationRequestInfo<'_>) -> bool {
    let key = info.subject_pki.raw;
    let ends = |attributes: &[u8]| info.raw.strip_suffix(attributes).is_some_and(|before| before.ends_with(key));
    match info.attributes() {
        [] => ends(NO_ATTRIBUTES),
        [_] => ends(NO_EXTENSIONS),
        _ => false,
    }
}

/// Organizations may be in one multi-valued RDN, as the klusterlet writes them, or in one each.
fn names(info: &X509CertificationRequestInfo<'_>) -> Option<Subject> {
    let (mut common_name, mut organizations) = (None, Vec::new());
    for attribute in info.subject.iter_attributes() {
        let value = attribute.as_str().ok()?.to_owned();
        if *attribute.attr_type() == OID_X509_ORGANIZATION_NAME {
            organizations.push(value);
        } else if *attribute.attr_type() == OID_X509_COMMON_NAME && common_name.is_none() {
            common_name = Some(value);
        } else {
            return None;
        }
    }
    Some(Subject { common_name: common_name?, organizations })
}
