//! Any Cluster of Karmada with any Secret: a cluster that a gateway can use, or a refusal that
//! repeats no value.
//!
//! Input: changes of a good pair (`sources::changed`).

use register::karmada::{read, references};
use serde_json::{Value, json};

use crate::sources::check_referring;

pub const WORDS: &[&str] = &[
    "\n/object/spec/",
    "\n/secret/",
    "syncMode Pull",
    "apiEndpoint ",
    "https://",
    "http://",
    "socks5://",
    "m:6443",
    "[fe80::1]",
    "169.254.169.254",
    "gateway:9443",
    "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/a/proxy",
    "secretRef/name ",
    "secretRef null",
    "impersonatorSecretRef ",
    "{\"namespace\": \"ns\", \"name\": \"s\"}",
    "insecureSkipTLSVerification true",
    "proxyURL ",
    "u:~secret~@",
    "proxyHeader/Proxy-Authorization ",
    "Basic ",
    "fnNlY3JldH46YQ==",
    "region ",
    "zones [\"a\", \"b\"]",
    "provider ",
    "stringData/token ",
    "stringData/caBundle ",
    "type kubernetes.io/service-account-token",
    "~secret~",
    "../",
    "null",
    "{}",
    "[]",
];

fn good() -> Value {
    json!({
        "object": {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": "c1", "uid": "u-1"},
            "spec": {"syncMode": "Push", "apiEndpoint": "https://m:6443",
                "secretRef": {"namespace": "ns", "name": "s"}}},
        "secret": {"metadata": {"namespace": "ns", "name": "s"}, "stringData": {"token": "t"}}})
}

pub fn check(input: &[u8]) {
    check_referring(good(), input, references, read);
}
