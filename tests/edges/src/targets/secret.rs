//! Any Secret: it becomes a cluster whose endpoint is a URL, or an error that repeats nothing of
//! its data.
//!
//! What is shown of a cluster has nothing of its credential.
//!
//! Input: values separated by zero bytes, in the order of [`DATA_KEYS`], and then the time of
//! creation; the first byte picks the credential type and the rules.

use std::collections::BTreeMap;

use api::accept::Representation;
use api::cluster_gateway::{ClusterGateway, Credentials};
use api::health::Health;
use api::secret::{
    CREDENTIAL_TYPE_LABEL, ClusterEndpoint, ClusterSpec, Credential, DATA_KEYS, MissingCa, ProxyUrl, SecretRules,
    SecretView, Trust,
};
use api::served::Form;
use api::table::IncludeObject;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret as _;

pub const WORDS: &[&str] = &[
    "https://",
    "http://",
    "[{\"url\": \"https://b:6443\"}]",
    "[::1]",
    ":6443",
    "@",
    "/",
    "\0",
    "~secret~",
    "-----BEGIN CERTIFICATE-----\n",
    "-----END CERTIFICATE-----\n",
    "-----BEGIN PRIVATE KEY-----\n",
    "{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"command\":\"c\"",
    "socks5://",
    "true",
    "\n",
    "%",
    "\\u0000",
];

/// `text` shows the cluster. A value that is shown may be the same as one that is not.
fn check_redacted(cluster: &ClusterSpec, text: &str, created: &str) {
    let mut shown = vec![created.to_owned()];
    if let ClusterEndpoint::Const(fixed) = &cluster.endpoint {
        shown.push(fixed.url.to_string());
        shown.extend(fixed.proxy.as_ref().map(ProxyUrl::redacted));
    }
    if let Trust::Bundle(bundle) = &cluster.trust {
        shown.extend([STANDARD.encode(bundle), String::from_utf8_lossy(bundle).into_owned()]);
    }
    let hidden = match &cluster.credential {
        Credential::Token(token) => vec![token.expose_secret().to_owned()],
        Credential::X509 { private_key, .. } => vec![STANDARD.encode(private_key.expose_secret())],
        Credential::Exec(exec) => exec.env.iter().map(|(_, value)| value.expose_secret().to_owned()).collect(),
    };
    // Shorter ones may be parts of our own words.
    for value in hidden.iter().filter(|value| value.len() >= 40 || value.contains('~')) {
        let escaped = serde_json::to_string(value).expect("a text");
        let is_shown = shown.iter().any(|shown| shown.contains(value.as_str()));
        let coded = STANDARD.encode(value);
        let is_there = [value.as_str(), escaped.trim_matches('"'), &coded].iter().any(|one| text.contains(*one));
        assert!(!is_there || is_shown, "a credential is shown: {text}");
    }
}

pub fn check(input: &[u8]) {
    let Some((first, rest)) = input.split_first() else { return };
    let kind = match first & 9 {
        0 => "ServiceAccountToken",
        1 => "X509Certificate",
        _ => "Dynamic",
    };
    let missing_ca = if first & 2 == 0 { MissingCa::SystemRoots } else { MissingCa::Insecure };
    let rules = SecretRules { allow_http: first & 4 != 0, missing_ca };
    let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), kind.to_owned())]);
    let mut values = rest.split(|byte| *byte == 0);
    let of_keys = DATA_KEYS.iter().zip(values.by_ref());
    let data: BTreeMap<String, Vec<u8>> = of_keys.map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect();
    let created = values.next().and_then(|text| std::str::from_utf8(text).ok());
    let secret = SecretView {
        name: "c1",
        uid: "u",
        resource_version: "1",
        creation_timestamp: created,
        labels: &labels,
        annotations: &BTreeMap::new(),
        data: &data,
    };
    match ClusterSpec::from_secret(&secret, rules) {
        Ok(cluster) => {
            if let ClusterEndpoint::Const(fixed) = &cluster.endpoint {
                let uri: http::Uri = fixed.url.to_string().parse().expect("an accepted endpoint is a URI");
                assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some(fixed.url.authority.as_str()));
            }
            if let Credential::Exec(exec) = &cluster.credential {
                let mut texts = exec.args.iter().chain(exec.env.iter().map(|(name, _)| name)).chain([&exec.command]);
                assert!(!texts.any(|text| text.contains('\0')), "no program can be run so");
            }
            let form = Form { representation: Representation::Json, include: IncludeObject::None };
            let object = form.object(&ClusterGateway::new(&cluster, Health::of(&cluster), Credentials::Redacted));
            check_redacted(&cluster, &String::from_utf8_lossy(&object), created.unwrap_or_default());
        }
        // Our own words have no tilde: a message with one has copied a value.
        Err(error) => {
            let error = error.to_string();
            let texts = data.values().filter_map(|value| std::str::from_utf8(value).ok());
            assert!(!texts.filter(|text| text.contains('~')).any(|text| error.contains(text)), "{error}");
        }
    }
}
