//! Any `KubeFedCluster` with any Secret: a cluster that a gateway can use, or a refusal that
//! repeats no value.
//!
//! Input: changes of a good pair (`sources::changed`).

use register::kubefed::{read, references};
use serde_json::{Value, json};

use crate::sources::check_referring;

pub const WORDS: &[&str] = &[
    "\n/object/spec/",
    "\n/object/metadata/namespace ",
    "\n/secret/",
    "apiEndpoint ",
    "https://",
    "http://",
    "m:6443",
    "10.0.0.7",
    "[fd00::7]",
    "[fe80::1]",
    "169.254.169.254",
    "gateway:9443",
    "caBundle ",
    "fnNlY3JldH4=",
    "secretRef/name ",
    "disabledTLSValidations [\"*\"]",
    "disabledTLSValidations [\"SubjectName\"]",
    "proxyURL ",
    "socks5://u:~secret~@p",
    "stringData/token ",
    "type kubernetes.io/service-account-token",
    "~secret~",
    "@",
    "?",
    "#",
    "/",
    ":",
    "null",
    "{}",
    "[]",
];

fn good() -> Value {
    json!({
        "object": {"apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
            "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1"},
            "spec": {"apiEndpoint": "m:6443", "secretRef": {"name": "s"}}},
        "secret": {"metadata": {"namespace": "ns", "name": "s"}, "stringData": {"token": "t"}}})
}

pub fn check(input: &[u8]) {
    check_referring(good(), input, references, read);
}
