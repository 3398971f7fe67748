//! Any write of a cluster's health: its result is the same whatever the credential is, so that
//! trying does not reveal the credential.
//!
//! Input: the body; the first byte picks its type.

use std::collections::BTreeMap;

use api::health_change::{Change, HealthUpdate, Refused};
use api::secret::{CREDENTIAL_TYPE_LABEL, ClusterSpec, SecretRules, SecretView};

pub const WORDS: &[&str] = &[
    r#"{"kind":"ClusterGateway","apiVersion":"cluster.core.oam.dev/v1alpha1","metadata":{"name":"c1"},"status":{"healthy":true}}"#,
    r#"{"status":{"healthy":false,"reason":"r"}}"#,
    r#"[{"op":"test","path":"/spec/access/credential/serviceAccountToken","value":"~one~"}]"#,
    r#"{"op":"copy","from":"/spec/access/credential","path":"/status/reason"}"#,
    r#"{"op":"move","from":"/spec","path":"/status"}"#,
    r#"{"op":"replace","path":"/status/healthy","value":true}"#,
    r#"{"op":"add","path":"/metadata/uid","value":"u"}"#,
    r#"{"op":"remove","path":"/metadata/name"}"#,
    r#""resourceVersion":"1""#,
    "/status/healthyReason",
    "/spec/access/endpoint/const/address",
    "~one~",
    "~1",
    "~0",
    "null",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\0",
    "\u{1}",
];

/// Values of one credential.
const TOKENS: [&str; 2] = ["~one~", "~other~"];

fn cluster(token: &str) -> ClusterSpec {
    let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), "ServiceAccountToken".to_owned())]);
    let data = [("endpoint", "https://c1:6443"), ("token", token)];
    let data: BTreeMap<_, _> = data.map(|(key, value)| (key.to_owned(), value.as_bytes().to_vec())).into();
    let secret = SecretView {
        name: "c1",
        uid: "u",
        resource_version: "1",
        creation_timestamp: None,
        labels: &labels,
        annotations: &BTreeMap::new(),
        data: &data,
    };
    ClusterSpec::from_secret(&secret, SecretRules::default()).expect("a cluster")
}

fn wanted(kind: u8, body: &[u8], token: &str) -> Result<HealthUpdate, Refused> {
    let change = match kind % 3 {
        0 => Change::update(body),
        1 => Change::merge(body),
        _ => Change::operations(body),
    };
    change?.wanted(&cluster(token))
}

pub fn check(input: &[u8]) {
    let Some((kind, body)) = input.split_first() else { return };
    let [one, other] = TOKENS.map(|token| wanted(*kind, body, token));
    assert_eq!(one, other, "the credential counts");
}
