//! All outputs of a plugin. The cases and texts are those of the Go cluster-gateway.

use std::time::{Duration, UNIX_EPOCH};

use kit::pki::{Authority, Leaf};
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};

use super::*;

const V1: &str = "client.authentication.k8s.io/v1";

fn credential(status: &Value) -> Result<Credential, String> {
    read(&json!({"apiVersion": V1, "kind": "ExecCredential", "status": status}).to_string())
}

fn read(stdout: &str) -> Result<Credential, String> {
    parse(stdout.as_bytes(), ExecApiVersion::V1).map_err(|error| error.to_string())
}

fn refusal(stdout: &str) -> String {
    read(stdout).expect_err("refused")
}

#[test]
fn a_token() {
    let issued = credential(&json!({"token": "tok.en", "expirationTimestamp": "2030-01-01T00:00:00Z"})).unwrap();
    assert_eq!(issued.token.unwrap().expose_secret(), "tok.en");
    assert!(issued.certificate.is_none());
    assert_eq!(issued.expires, Some(UNIX_EPOCH + Duration::from_hours(525_960)));

    let issued = credential(&json!({"token": "tok.en\n", "expirationTimestamp": null})).unwrap();
    assert_eq!((issued.token.unwrap().expose_secret(), issued.expires), ("tok.en", None));
}

#[test]
fn the_kind_may_be_left_out_and_offsets_count() {
    let issued = read(
        r#"{"apiVersion":"client.authentication.k8s.io/v1","status":{"token":"t","expirationTimestamp":"2030-01-01T02:00:00.5+02:00"}}"#,
    );
    assert_eq!(issued.unwrap().expires, Some(UNIX_EPOCH + Duration::from_millis(1_893_456_000_500)));
}

#[test]
fn a_certificate_ends_with_what_ends_first() {
    let leaf = Authority::new("ca").issue(&Leaf::client("gateway"));
    let pair = json!({"clientCertificateData": leaf.chain_pem, "clientKeyData": leaf.key_pem});
    let issued = credential(&pair).unwrap();
    let own_end = issued.expires.expect("the certificate's");
    assert!(issued.token.is_none() && issued.certificate.is_some());

    let mut both = pair.clone();
    both["token"] = "t".into();
    both["expirationTimestamp"] = "2020-01-01T00:00:00Z".into();
    let issued = credential(&both).unwrap();
    assert!(issued.token.is_some() && issued.certificate.is_some());
    assert!(issued.expires.unwrap() < own_end);

    both["expirationTimestamp"] = "9999-01-01T00:00:00Z".into();
    assert_eq!(credential(&both).unwrap().expires, Some(own_end));
}

#[test]
fn every_refusal_has_its_words() {
    let status = |status: Value| json!({"apiVersion": V1, "status": status}).to_string();
    let version = |version: &str| json!({"apiVersion": version, "status": {"token": "t"}}).to_string();
    let beta = "client.authentication.k8s.io/v1beta1";
    for (stdout, expected) in [
        (String::new(), "decoding stdout: no JSON object"),
        ("canary".into(), "decoding stdout: no JSON object"),
        (r#"{"apiVersion": ["canary"]}"#.into(), "decoding stdout: no JSON object"),
        (format!("{}canary", status(json!({"token": "t"}))), "decoding stdout: no JSON object"),
        (status(json!({"token": 7})), "decoding stdout: no JSON object"),
        (json!({"apiVersion": V1, "kind": "Pod"}).to_string(), "the object's kind is \"Pod\", not ExecCredential"),
        (version(beta), &*format!("is configured to use API version {V1}, plugin returned version {beta}")),
        (version(""), "plugin returned version "),
        (version("a\nb"), "plugin returned version a\\nb"),
        (json!({"status": {"token": "t"}}).to_string(), "plugin returned version "),
        (json!({"apiVersion": V1}).to_string(), "exec plugin didn't return a status field"),
        (json!({"apiVersion": V1, "status": null}).to_string(), "exec plugin didn't return a status field"),
        (status(json!({})), "exec plugin didn't return a token or cert/key pair"),
        (status(json!({"token": ""})), "exec plugin didn't return a token or cert/key pair"),
        (status(json!({"token": "t", "clientKeyData": "canary"})), "returned only certificate or key, not both"),
        (status(json!({"clientCertificateData": "canary"})), "returned only certificate or key, not both"),
        (
            status(json!({"clientCertificateData": "canary", "clientKeyData": "canary"})),
            "exec plugin returned an unusable client certificate: no certificate found",
        ),
        (status(json!({"token": "can ary"})), "characters that are invalid in a bearer token"),
        (status(json!({"token": " \n"})), "characters that are invalid in a bearer token"),
        (status(json!({"token": "t", "expirationTimestamp": "canary"})), "is not an RFC 3339 time"),
        (status(json!({"token": "t", "expirationTimestamp": 7})), "decoding stdout: no JSON object"),
    ] {
        let refusal = refusal(&stdout);
        assert!(refusal.contains(expected), "{stdout}: {refusal}");
        assert!(!refusal.contains("canary"), "{refusal}");
    }
}

#[test]
fn a_version_is_repeated_in_part_only() {
    let refusal = refusal(&json!({"apiVersion": "x".repeat(100_000)}).to_string());
    assert!(refusal.len() < 300, "{}", refusal.len());
}

#[test]
fn both_versions_are_read() {
    let stdout = json!({"apiVersion": "client.authentication.k8s.io/v1beta1", "status": {"token": "t"}}).to_string();
    assert!(parse(stdout.as_bytes(), ExecApiVersion::V1Beta1).is_ok());
    assert!(parse(stdout.as_bytes(), ExecApiVersion::V1).is_err());
}

proptest::proptest! {
    #[test]
    fn no_output_is_repeated(stdout in "(\\PC|[\\[\\]{}\":,]){0,200}") {
        if let Err(error) = read(&stdout) {
            assert!(error.len() < 400);
        }
    }
}
