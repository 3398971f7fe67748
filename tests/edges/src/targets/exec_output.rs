//! Anything a credential plugin prints as its credential: a token that fits a header, as JSON has
//! it, or a refusal that repeats nothing secret.
//!
//! Input: standard output.

use secrecy::ExposeSecret;

pub const WORDS: &[&str] = &[
    "{",
    "}",
    "\"",
    ":",
    ",",
    "null",
    "\"apiVersion\":",
    "\"client.authentication.k8s.io/v1\"",
    "\"kind\":",
    "\"ExecCredential\"",
    "\"status\":",
    "\"token\":",
    "~secret~",
    "\\n",
    "\\u0000",
    "\\u001b",
    "\\u202e",
    " ",
    "\"clientCertificateData\":",
    "\"clientKeyData\":",
    "\"expirationTimestamp\":",
    "\"2030-01-01T00:00:00Z\"",
    "9999",
    "-----BEGIN CERTIFICATE-----\\n",
];

pub fn check(input: &[u8]) {
    let issued = match exec_credential::edges::credential(input) {
        Ok(issued) => issued,
        Err(error) => {
            let error = error.to_string();
            assert!(!error.contains(char::is_control) && error.len() < 1200, "{error:?}");
            // Of a kind and a version so much may be said.
            let said = serde_json::from_str::<serde_json::Value>(&String::from_utf8_lossy(input)).unwrap_or_default();
            let told = |key: &str| said[key].as_str().is_some_and(|text| text.contains("~secret~"));
            assert!(told("kind") || told("apiVersion") || !error.contains("~secret~"), "{error}");
            return;
        }
    };
    // Ignored parts need not be text, nor nested within a limit.
    let Ok(said) = serde_json::from_str::<serde_json::Value>(&String::from_utf8_lossy(input)) else { return };
    assert_eq!(said["apiVersion"], "client.authentication.k8s.io/v1");
    let text = said["status"]["token"].as_str().map(|text| text.trim_end_matches([' ', '\t', '\n', '\r', '\x0c']));
    let token = issued.token.as_ref().map(ExposeSecret::expose_secret);
    assert_eq!(token, text.filter(|text| !text.is_empty()));
    assert!(token.is_none_or(|token| token.bytes().all(|byte| byte.is_ascii_graphic())));
    assert!(token.is_some() || issued.certificate.is_some(), "no credential");
}
