//! Any Secret: it becomes a cluster whose endpoint is a URL, or an error that repeats nothing of
//! its data.
//!
//! Input: values separated by zero bytes, in the order of [`DATA_KEYS`]; the first byte picks the
//! credential type and the rules.

use std::collections::BTreeMap;

use api::accept::Representation;
use api::cluster_gateway::{ClusterGateway, Credentials};
use api::health::Health;
use api::secret::{
    CREDENTIAL_TYPE_LABEL, ClusterEndpoint, ClusterSpec, Credential, DATA_KEYS, MissingCa, SecretRules, SecretView,
};
use api::served::Form;
use api::table::IncludeObject;

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
    let values = DATA_KEYS.iter().zip(rest.split(|byte| *byte == 0));
    let data: BTreeMap<String, Vec<u8>> = values.map(|(key, value)| ((*key).to_owned(), value.to_vec())).collect();
    let secret = SecretView {
        name: "c1",
        uid: "u",
        resource_version: "1",
        creation_timestamp: std::str::from_utf8(rest).ok(),
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
            let _ = form.object(&ClusterGateway::new(&cluster, Health::of(&cluster), Credentials::Redacted));
        }
        // Our own words have no tilde: a message with one has copied a value.
        Err(error) => {
            let error = error.to_string();
            let texts = data.values().filter_map(|value| std::str::from_utf8(value).ok());
            assert!(!texts.filter(|text| text.contains('~')).any(|text| error.contains(text)), "{error}");
        }
    }
}
