//! Any kubeconfig: each context a Secret that is a cluster or is refused, and no reason repeats a
//! credential.
//!
//! Input: the file. The words name no existing file.

use std::collections::BTreeMap;

use api::secret::{
    CREDENTIAL_TYPE_LABEL, ClusterSpec, ENDPOINT_KEY, SecretRules, SecretView, TLS_PRIVATE_KEY_KEY, TOKEN_KEY,
};

pub const WORDS: &[&str] = &[
    "clusters:\n",
    "users:\n",
    "contexts:\n",
    "- name: a\n",
    "  cluster: {server: 'https://m:6443'}\n",
    "  user: {token: ~secret~}\n",
    "  context: {cluster: a, user: a}\n",
    "token: ",
    "username: a, password: '~secret~'",
    "exec: {command: x}",
    "client-key-data: ",
    "client-certificate-data: ",
    "client-key: ~secret~",
    "client-certificate: ~secret~",
    "tokenFile: ~secret~",
    "certificate-authority-data: ",
    "fnNlY3JldH4=",
    "insecure-skip-tls-verify: true",
    "proxy-url: 'http://u:~secret~@p:1'",
    "tls-server-name: m",
    "\n",
    "'",
    "{",
    "}",
    ", ",
    "null",
    "~secret~",
    "- name: b\n",
];

pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    for secret in gateway::edges::contexts(text).unwrap_or_default() {
        match secret {
            Err(why) => assert!(!why.contains("~secret~"), "{why}"),
            Ok((kind, data)) => converted(kind, &data),
        }
    }
}

fn converted(kind: &str, data: &BTreeMap<String, Vec<u8>>) {
    let credential = if kind == "X509Certificate" { TLS_PRIVATE_KEY_KEY } else { TOKEN_KEY };
    assert!(data.contains_key(credential) && data.contains_key(ENDPOINT_KEY), "{kind} with {:?}", data.keys());
    let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), kind.to_owned())]);
    let view = SecretView {
        name: "a",
        uid: "u",
        resource_version: "1",
        creation_timestamp: None,
        labels: &labels,
        annotations: &BTreeMap::new(),
        data,
    };
    if let Err(error) = ClusterSpec::from_secret(&view, SecretRules::default()) {
        assert!(!error.to_string().contains("~secret~"), "{error}");
    }
}
