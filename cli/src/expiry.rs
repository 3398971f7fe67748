//! When a registered credential ends, as far as it says itself.

use api::secret::{TLS_CERT_KEY, TOKEN_KEY};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use k8s_openapi::ByteString;
use serde::Deserialize;
use std::collections::BTreeMap;
use x509_parser::pem::Pem;

use crate::span;

/// The end of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    /// It says that it has none, as tokens of Secrets do.
    Never,
    /// Seconds since 1970.
    At(i64),
    /// It does not say, or could not be read.
    Unknown,
}

#[derive(Deserialize)]
struct Claims {
    exp: Option<i64>,
}

// === impl Expiry ===

impl Expiry {
    /// Of the credential in a cluster's Secret.
    pub fn of(data: &BTreeMap<String, ByteString>) -> Self {
        if let Some(token) = data.get(TOKEN_KEY) {
            return Self::of_token(&token.0);
        }
        data.get(TLS_CERT_KEY).map_or(Self::Unknown, |pem| Self::of_certificate(&pem.0))
    }

    /// Of a ServiceAccount's token, which is a JWT (RFC 7519). Nobody verifies it here: a forged
    /// date would deceive its own writer.
    pub fn of_token(token: &[u8]) -> Self {
        let claims = || {
            let payload = token.trim_ascii().split(|byte| *byte == b'.').nth(1)?;
            let json = URL_SAFE_NO_PAD.decode(payload).ok()?;
            serde_json::from_slice::<Claims>(&json).ok()
        };
        claims().map_or(Self::Unknown, |claims| claims.exp.map_or(Self::Never, Self::At))
    }

    /// Of the first certificate in a PEM chain, which is the client's own.
    pub fn of_certificate(pem: &[u8]) -> Self {
        let end = || {
            let (_, pem) = x509_parser::pem::parse_x509_pem(pem).ok()?;
            Some(pem.parse_x509().ok()?.validity().not_after.timestamp())
        };
        end().map_or(Self::Unknown, Self::At)
    }

    /// Of each certificate in a PEM file, in seconds since 1970; `None`: one cannot be read.
    pub fn of_bundle(pem: &[u8]) -> Option<Vec<i64>> {
        let all = Pem::iter_from_buffer(pem).map(|pem| {
            let pem = pem.ok()?;
            Some(pem.parse_x509().ok()?.validity().not_after.timestamp())
        });
        all.collect()
    }

    /// What is left of it at `now`, in a word.
    pub fn left(self, now: i64) -> String {
        match self {
            Self::Never => "never".to_owned(),
            Self::Unknown => "-".to_owned(),
            Self::At(end) if end <= now => "expired".to_owned(),
            Self::At(end) => span::rough(end - now),
        }
    }
}

/// Seconds since 1970.
pub fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
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
    fn a_certificate_says_when_it_ends() {
        let issued = Authority::new("ca").issue(&Leaf::client("c"));
        let data = BTreeMap::from([(TLS_CERT_KEY.to_owned(), ByteString(issued.chain_pem.clone().into_bytes()))]);
        let Expiry::At(end) = Expiry::of(&data) else { panic!("it ends") };
        assert!(end > now());
        assert_eq!(Expiry::of(&BTreeMap::new()), Expiry::Unknown);
    }

    #[test]
    fn what_is_left_is_told_in_a_word() {
        let left = [Expiry::Never, Expiry::Unknown, Expiry::At(100), Expiry::At(100 + 90 * 86_400)];
        assert_eq!(left.map(|expiry| expiry.left(100)), ["never", "-", "expired", "90d"]);
    }
}
