//! Sample clusters for the tests of this crate. Their secrets contain the word `canary`.

use std::collections::BTreeMap;

use crate::secret::{CREDENTIAL_TYPE_LABEL, ClusterSpec, SecretRules, SecretView};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

pub(crate) fn token_cluster(name: &str) -> ClusterSpec {
    let data = [("endpoint", "https://m:6443/prefix"), ("ca.crt", CERTIFICATE), ("token", "canary")];
    cluster(name, "ServiceAccountToken", &data)
}

pub(crate) fn certificate_cluster(name: &str) -> ClusterSpec {
    let data = [
        ("endpoint", "https://[::1]:6443"),
        ("insecure-skip-tls-verify", "true"),
        ("tls.crt", CERTIFICATE),
        ("tls.key", "-----BEGIN PRIVATE KEY-----\ncanary\n-----END PRIVATE KEY-----\n"),
    ];
    cluster(name, "X509Certificate", &data)
}

/// A cluster behind a forward proxy with a password.
pub(crate) fn proxied_cluster(name: &str) -> ClusterSpec {
    let data = [
        ("endpoint", "https://m:6443"),
        ("token", "canary"),
        ("proxy-url", "http://jane:canary%40@proxy.example:3128"),
    ];
    cluster(name, "ServiceAccountToken", &data)
}

fn cluster(name: &str, credential_type: &str, data: &[(&str, &str)]) -> ClusterSpec {
    let secret = SecretView {
        name,
        uid: "7e3f2a52-0000-4000-8000-000000000001",
        resource_version: "41",
        creation_timestamp: Some("2026-11-21T10:00:00Z"),
        labels: &BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), credential_type.to_owned())]),
        annotations: &BTreeMap::new(),
        data: &data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect(),
    };
    ClusterSpec::from_secret(&secret, SecretRules::default()).expect("the sample is a valid cluster")
}
