//! The claims of a ServiceAccount's token (RFC 7519; its claims are in Kubernetes'
//! `pkg/serviceaccount/claims.go`).
//!
//! It is not verified here. A member's API server issues the tokens of its own accounts; if it
//! issues false ones, it deceives only its own users.

use std::fmt;

use serde::Deserialize;

use crate::expiry::{self, Expiry};

/// Limit of a token in bytes. API servers issue about one thousand.
const LONGEST: usize = 16 << 10;

/// The subject of a token, and its period of validity.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceAccountToken {
    /// `system:serviceaccount:<namespace>:<name>`.
    pub subject: String,
    /// Uid of the ServiceAccount.
    pub uid: String,
    /// Seconds since 1970, as is the next.
    pub issued: i64,
    pub ends: i64,
}

#[derive(Deserialize)]
struct Claims {
    sub: String,
    iat: i64,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Kubernetes,
}

#[derive(Deserialize)]
struct Kubernetes {
    serviceaccount: Account,
    /// When the token should have been replaced, for a token whose life was extended for old
    /// clients (`--service-account-extend-token-expiration`).
    warnafter: Option<i64>,
}

#[derive(Deserialize)]
struct Account {
    uid: String,
}

// === impl ServiceAccountToken ===

impl ServiceAccountToken {
    /// `None` if it is not a ServiceAccount's token with an expiry.
    pub fn read(token: &[u8]) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let Expiry::At(end) = Expiry::of_token(token) else { return None };
        let Claims { sub, iat, kubernetes } = expiry::claims(token)?;
        let ends = kubernetes.warnafter.map_or(end, |warned| warned.min(end));
        Some(Self { subject: sub, uid: kubernetes.serviceaccount.uid, issued: iat, ends })
    }

    /// The granted life, which may be shorter than the requested one.
    pub fn life(&self) -> i64 {
        self.ends.saturating_sub(self.issued).max(0)
    }
}

impl fmt::Debug for ServiceAccountToken {
    /// Prints the period, which is no secret, and nothing that a malformed token may hold.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "ServiceAccountToken({} to {})", self.issued, self.ends)
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn token(claims: &str) -> Vec<u8> {
        format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims)).into_bytes()
    }

    /// As kube-apiserver 1.35 issues it, in this order.
    const ISSUED: &str = r#"{"aud":["https://kubernetes.default.svc"],"exp":1748219780,"iat":1747614980,
        "iss":"https://kubernetes.default.svc","jti":"ed5ed5a8-02bc-48eb-8d17-6cbdf56d5e16","kubernetes.io":{
        "namespace":"ns","serviceaccount":{"name":"a","uid":"u-1"}},"nbf":1747614980,
        "sub":"system:serviceaccount:ns:a"}"#;

    #[test]
    fn a_token_says_whose_it_is_and_for_how_long() {
        let read = ServiceAccountToken::read(&token(ISSUED)).unwrap();
        let expected = ServiceAccountToken {
            subject: "system:serviceaccount:ns:a".into(),
            uid: "u-1".into(),
            issued: 1_747_614_980,
            ends: 1_748_219_780,
        };
        assert_eq!(read, expected);
        assert_eq!(read.life(), 7 * 86_400);
        assert!(!format!("{read:?}").contains("u-1"));
    }

    #[test]
    fn a_life_that_was_lengthened_is_not_the_life_granted() {
        let lengthened = ISSUED.replace(r#""namespace":"ns""#, r#""warnafter":1747618587"#);
        assert_eq!(ServiceAccountToken::read(&token(&lengthened)).unwrap().life(), 3607);
        let beyond = ISSUED.replace(r#""namespace":"ns""#, r#""warnafter":1948219780"#);
        assert_eq!(ServiceAccountToken::read(&token(&beyond)).unwrap().life(), 7 * 86_400);
    }

    #[test]
    fn what_is_no_such_token_is_none() {
        let changed = |from: &str, to: &str| token(&ISSUED.replace(from, to));
        let long = ISSUED.replace("u-1", &"u".repeat(LONGEST));
        for (what, other) in [
            ("no end", changed(r#""exp":1748219780,"#, "")),
            ("no beginning", changed(r#""iat":1747614980,"#, "")),
            ("no subject", changed(r#""sub""#, r#""bus""#)),
            ("no account", changed(r#""serviceaccount""#, r#""pod""#)),
            ("an end that is text", changed("1748219780", r#""soon""#)),
            ("an end beyond all numbers", changed("1748219780", "99999999999999999999")),
            ("a fraction", changed("1748219780", "1748219780.5")),
            ("no JSON", token("{")),
            ("one part", b"opaque".to_vec()),
            ("nothing", Vec::new()),
            ("no base64", b"a.!.c".to_vec()),
            ("too long", token(&long)),
            ("too deep", token(&format!(r#"{{"a":{}"#, "[".repeat(4000)))),
        ] {
            assert_eq!(ServiceAccountToken::read(&other), None, "{what}");
        }
    }

    #[test]
    fn an_end_before_the_beginning_is_no_life() {
        let turned = ISSUED.replace("1748219780", "-9223372036854775808");
        assert_eq!(ServiceAccountToken::read(&token(&turned)).unwrap().life(), 0);
    }
}
