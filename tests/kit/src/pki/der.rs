//! The little DER (X.690) needed to give a certificate a subject with several organisations.
//!
//! rcgen keeps its distinguished names in a map with one value per attribute type. Kubernetes reads
//! every O of the subject as a group, so the subject is written here, put in place of rcgen's, and
//! the certificate signed again.

use rcgen::{KeyPair, SigningKey as _};
use rustls_pki_types::CertificateDer;

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// `[0] EXPLICIT`: the version of a `TBSCertificate`.
const VERSION: u8 = 0xa0;

/// Position of `subject` in a version 3 `TBSCertificate`: after version, serial number, signature,
/// issuer and validity (RFC 5280 section 4.1).
const SUBJECT: usize = 5;

/// Contents of the object identifier 2.5.4.3, `commonName`.
pub(super) const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// Contents of the object identifier 2.5.4.10, `organizationName`.
pub(super) const ORGANISATION: &[u8] = &[0x55, 0x04, 0x0a];

/// A `Name` with one attribute in each relative distinguished name, in the order given.
pub(super) fn name<'a>(attributes: impl Iterator<Item = (&'a [u8], &'a str)>) -> Vec<u8> {
    let rdns = attributes.map(|(identifier, value)| {
        let pair = [element(OBJECT_IDENTIFIER, identifier), element(UTF8_STRING, value.as_bytes())].concat();
        element(SET, &element(SEQUENCE, &pair))
    });
    element(SEQUENCE, &rdns.collect::<Vec<_>>().concat())
}

/// `certificate` with another subject, signed by `key`, which must be the one that signed it
/// before.
pub(super) fn replace_subject(certificate: &[u8], subject: &[u8], key: &KeyPair) -> CertificateDer<'static> {
    let parts = elements(contents(certificate));
    let [tbs, algorithm, _signature] = parts.as_slice() else { panic!("a certificate has three parts") };
    let mut fields = elements(contents(tbs));
    assert_eq!((fields[0][0], fields[1][0]), (VERSION, INTEGER), "rcgen writes version 3 certificates");
    fields[SUBJECT] = subject;
    let tbs = element(SEQUENCE, &fields.concat());
    let mut signature = vec![0]; // unused bits of the bit string
    signature.extend(key.sign(&tbs).expect("the key signed this certificate before"));
    let signed = [&tbs[..], algorithm, &element(BIT_STRING, &signature)].concat();
    CertificateDer::from(element(SEQUENCE, &signed))
}

/// One tag-length-value.
fn element(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    if let Ok(short @ 0..=0x7f) = u8::try_from(value.len()) {
        out.push(short);
    } else {
        let length = value.len().to_be_bytes();
        let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
        out.push(0x80 | u8::try_from(length.len()).expect("a length has at most eight bytes"));
        out.extend_from_slice(length);
    }
    out.extend_from_slice(value);
    out
}

/// Splits concatenated elements, each with its header.
fn elements(mut input: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !input.is_empty() {
        let (header, length) = header(input);
        let (element, rest) = input.split_at(header + length);
        found.push(element);
        input = rest;
    }
    found
}

fn contents(element: &[u8]) -> &[u8] {
    let (header, length) = header(element);
    &element[header..header + length]
}

/// Bytes of the header and of the contents of the first element.
fn header(input: &[u8]) -> (usize, usize) {
    match input[1] {
        short @ 0..=0x7f => (2, short.into()),
        long => {
            let bytes = usize::from(long & 0x7f);
            let length = input[2..2 + bytes].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            (2 + bytes, length)
        }
    }
}
