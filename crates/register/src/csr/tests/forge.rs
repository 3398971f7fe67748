//! Requests with any part of them forged. The DER is written here, because no library writes what
//! must be refused.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const COMMON_NAME: &[u8] = &[0x06, 3, 0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x06, 3, 0x55, 0x04, 0x0a];
const UNIT: &[u8] = &[0x06, 3, 0x55, 0x04, 0x0b];
const EXTENSION_REQUEST: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x0e];
const CHALLENGE_PASSWORD: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x07];
const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x06, 3, 0x55, 0x1d, 0x11];
const EC_PUBLIC_KEY: &[u8] = &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const ECDSA_WITH_SHA256: &[u8] = &[0x06, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const ECDSA_WITH_SHA1: &[u8] = &[0x06, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
const RSA: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0];
const SHA256_WITH_RSA: &[u8] = &[0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b, 0x05, 0];

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8: u8 = 0x0c;

/// A request of `c1`'s agent, as upstream's agent writes it, unless parts say otherwise.
#[derive(Debug)]
pub struct Forged {
    pub common_names: Vec<String>,
    pub organizations: Vec<String>,
    /// An organizational unit.
    pub unit: Option<String>,
    /// All organizations in one relative name.
    pub is_multi_valued: bool,
    /// DER of the attributes.
    pub attributes: Vec<u8>,
    /// Another key than the request's.
    pub signs: Option<EcdsaKeyPair>,
    pub is_sha1: bool,
    pub is_rsa_1024: bool,
    /// After the request.
    pub trailing: Vec<u8>,
}

pub fn key() -> EcdsaKeyPair {
    EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING).unwrap()
}

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let mut der = vec![tag];
    match content.len() {
        length @ 0..128 => der.push(u8::try_from(length).unwrap()),
        length => der.extend([0x82, u8::try_from(length >> 8).unwrap(), u8::try_from(length & 0xff).unwrap()]),
    }
    [der, content].concat()
}

/// An attribute with these extensions.
pub fn extension_request(extensions: &[u8]) -> Vec<u8> {
    der(SEQUENCE, &[EXTENSION_REQUEST, &der(SET, &[&der(SEQUENCE, &[extensions])])])
}

/// An attribute whose first value is empty, and whose second is not.
pub fn two_values() -> Vec<u8> {
    let (first, second) = (der(SEQUENCE, &[]), der(SEQUENCE, &[&alternative_name("c1")]));
    der(SEQUENCE, &[EXTENSION_REQUEST, &der(SET, &[&first, &second])])
}

pub fn challenge_password() -> Vec<u8> {
    der(SEQUENCE, &[CHALLENGE_PASSWORD, &der(SET, &[&der(UTF8, &[b"word"])])])
}

/// An extension with one DNS name.
pub fn alternative_name(name: &str) -> Vec<u8> {
    let names = der(SEQUENCE, &[&der(0x82, &[name.as_bytes()])]);
    der(SEQUENCE, &[SUBJECT_ALTERNATIVE_NAME, &der(OCTET_STRING, &[&names])])
}

fn attribute(kind: &[u8], value: &str) -> Vec<u8> {
    der(SEQUENCE, &[kind, &der(UTF8, &[value.as_bytes()])])
}

// === impl Forged ===

impl Default for Forged {
    fn default() -> Self {
        let organizations = ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"];
        Self {
            common_names: vec!["system:open-cluster-management:c1:agent-7".to_owned()],
            organizations: organizations.map(str::to_owned).to_vec(),
            unit: None,
            is_multi_valued: false,
            attributes: extension_request(&[]),
            signs: None,
            is_sha1: false,
            is_rsa_1024: false,
            trailing: Vec::new(),
        }
    }
}

impl Forged {
    pub fn pem(&self) -> String {
        let key = key();
        let info = der(
            SEQUENCE,
            &[&der(INTEGER, &[&[0]]), &self.subject(), &self.public_key(&key), &der(0xa0, &[&self.attributes])],
        );
        let signing = self.signs.as_ref().unwrap_or(&key);
        let signature = signing.sign(&SystemRandom::new(), &info).unwrap();
        let algorithm = match (self.is_rsa_1024, self.is_sha1) {
            (true, _) => SHA256_WITH_RSA,
            (false, true) => ECDSA_WITH_SHA1,
            (false, false) => ECDSA_WITH_SHA256,
        };
        let signature = der(BIT_STRING, &[&[0], signature.as_ref()]);
        let request = der(SEQUENCE, &[&info, &der(SEQUENCE, &[algorithm]), &signature]);
        let base64 = STANDARD.encode([request, self.trailing.clone()].concat());
        let lines: Vec<_> = base64.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n", lines.join("\n"))
    }

    fn subject(&self) -> Vec<u8> {
        let organizations: Vec<_> = self.organizations.iter().map(|name| attribute(ORGANIZATION, name)).collect();
        let others = self.common_names.iter().map(|name| attribute(COMMON_NAME, name));
        let others = others.chain(self.unit.iter().map(|name| attribute(UNIT, name))).map(|one| der(SET, &[&one]));
        let organizations = if self.is_multi_valued {
            vec![der(SET, &[&organizations.concat()])]
        } else {
            organizations.iter().map(|one| der(SET, &[one])).collect()
        };
        der(SEQUENCE, &[&organizations.concat(), &others.collect::<Vec<_>>().concat()])
    }

    fn public_key(&self, key: &EcdsaKeyPair) -> Vec<u8> {
        if !self.is_rsa_1024 {
            let algorithm = der(SEQUENCE, &[EC_PUBLIC_KEY, P256]);
            return der(SEQUENCE, &[&algorithm, &der(BIT_STRING, &[&[0], key.public_key().as_ref()])]);
        }
        let modulus = [&[0_u8][..], &[0xc5; 128]].concat();
        let numbers = der(SEQUENCE, &[&der(INTEGER, &[&modulus]), &der(INTEGER, &[&[1, 0, 1]])]);
        der(SEQUENCE, &[&der(SEQUENCE, &[RSA]), &der(BIT_STRING, &[&[0], &numbers])])
    }
}
