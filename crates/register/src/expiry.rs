//! When a credential expires, according to itself.
//!
//! Tokens and certificates are not verified here: a forged date would only deceive the writer of
//! it.

use api::secret::Credential;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use x509_parser::pem::Pem;

/// The expiry of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It says that it never expires, like tokens of Secrets.
    Never,
    /// Seconds since 1970.
    At(i64),
    /// It has no readable expiry.
    Unknown,
}

#[derive(Deserialize)]
struct Claims {
    exp: Option<i64>,
}

/// The claims of a JWT (RFC 7519, section 3), if the token is a JWT that has them.
pub(crate) fn claims<T: DeserializeOwned>(token: &[u8]) -> Option<T> {
    let payload = token.trim_ascii().split(|byte| *byte == b'.').nth(1)?;
    let json = URL_SAFE_NO_PAD.decode(payload).ok()?;
    serde_json::from_slice(&json).ok()
}

// === impl Expiry ===

impl Expiry {
    /// Expiry of a registered credential. A program that issues credentials says nothing about
    /// their expiry.
    pub fn of(credential: &Credential) -> Self {
        match credential {
            Credential::Token(token) => Self::of_token(token.expose_secret().as_bytes()),
            Credential::X509 { certificate, .. } => Self::of_certificate(certificate),
            Credential::Exec(_) => Self::Unknown,
        }
    }

    /// Expiry of a ServiceAccount's token, which is a JWT (RFC 7519).
    pub fn of_token(token: &[u8]) -> Self {
        claims::<Claims>(token).map_or(Self::Unknown, |claims| claims.exp.map_or(Self::Never, Self::At))
    }

    /// Expiry of the first certificate in a PEM chain, which is the client's own.
    pub fn of_certificate(pem: &[u8]) -> Self {
        let end = || {
            let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
            Some(pem.parse_x509().ok()?.validity().not_after.timestamp())
        };
        end().map_or(Self::Unknown, Self::At)
    }

    /// Expiry of each certificate in a PEM file, in seconds since 1970; `None` if one cannot be
    /// read.
    pub fn of_bundle(pem: &[u8]) -> Option<Vec<i64>> {
        let all = Pem::iter_from_buffer(pem).map(|pem| {
            let pem = pem.ok()?;
            Some(pem.parse_x509().ok()?.validity().not_after.timestamp())
        });
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use kit::pki::{Authority, Leaf};

    use super::*;

    fn token(claims: &str) -> Vec<u8> {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims)).into_bytes()
    }

    #[test]
    fn a_token_says_when_it_ends_or_that_it_does_not() {
        assert_eq!(Expiry::of_token(&token(r#"{"exp":1900000000,"sub":"x"}"#)), Expiry::At(1_900_000_000));
        assert_eq!(Expiry::of_token(&token(r#"{"sub":"x"}"#)), Expiry::Never);
        for opaque in [&b"opaque"[..], b"", b"a.b.c", b"a.!.c"] {
            assert_eq!(Expiry::of_token(opaque), Expiry::Unknown);
        }
    }

    #[test]
    fn a_credential_says_when_it_ends() {
        let issued = Authority::new("ca").issue(&Leaf::client("c"));
        let certificate = issued.chain_pem.clone().into_bytes();
        let ends = Expiry::of_bundle(&certificate).unwrap();
        let credential = Credential::X509 { certificate, private_key: Vec::new().into() };
        assert_eq!(Expiry::of(&credential), Expiry::At(ends[0]));
        let token = String::from_utf8(token(r#"{"exp":1900000000}"#)).unwrap();
        assert_eq!(Expiry::of(&Credential::Token(token.into())), Expiry::At(1_900_000_000));
    }
}
