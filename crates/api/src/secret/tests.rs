//! The meaning of each key, and the refusals with their messages, which never repeat a value.
//! Planted secrets contain `canary`.

use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::InvalidEndpoint as E;
use super::*;

const CA: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nplanted-canary\n-----END EC PRIVATE KEY-----\n";

type Texts<'a> = &'a [(&'a str, &'a str)];

fn convert(labels: Texts<'_>, data: Texts<'_>, rules: SecretRules) -> Result<ClusterSpec, SecretError> {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    let secret = SecretView {
        name: "c1",
        uid: "u-1",
        resource_version: "42",
        creation_timestamp: Some("2026-11-21T10:00:00Z"),
        labels: &labels,
        annotations: &BTreeMap::new(),
        data: &data,
    };
    ClusterSpec::from_secret(&secret, rules)
}

/// A valid token cluster with some keys added or, when the value is `-`, removed.
fn token_cluster(changes: Texts<'_>) -> Result<ClusterSpec, SecretError> {
    let mut data = vec![("endpoint", "https://m:6443"), ("ca.crt", CA), ("token", "planted-canary")];
    data.retain(|(key, _)| !changes.iter().any(|(changed, _)| changed == key));
    data.extend(changes.iter().filter(|(_, value)| *value != "-"));
    convert(&[(CREDENTIAL_TYPE_LABEL, "ServiceAccountToken")], &data, SecretRules::default())
}

fn trust(changes: Texts<'_>) -> Result<Trust, SecretError> {
    token_cluster(changes).map(|cluster| cluster.trust)
}

#[test]
fn token_cluster_is_read_whole() {
    let cluster = token_cluster(&[("endpoint", "https://Member.Example:6443/prefix/\n"), ("token", "tok.en_1 \n")])
        .expect("a valid cluster");
    assert_eq!((cluster.name.as_str(), &*cluster.uid, &*cluster.resource_version), ("c1", "u-1", "42"));
    assert_eq!(cluster.creation_timestamp.as_deref(), Some("2026-11-21T10:00:00Z"));
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { panic!("a fixed URL") };
    assert_eq!((fixed.url.to_string().as_str(), &fixed.proxy), ("https://member.example:6443/prefix", &None));
    assert_eq!(cluster.trust, Trust::Bundle(CA.as_bytes().to_vec()));
    assert_eq!(cluster.tls_server_name, None);
    let Credential::Token(token) = &cluster.credential else { panic!("a token") };
    assert_eq!(token.expose_secret(), "tok.en_1");
}

#[test]
fn certificate_cluster_is_read_whole() {
    let data = [("endpoint", "https://m"), ("ca.crt", CA), ("tls.crt", CA), ("tls.key", KEY)];
    let labels = [(CREDENTIAL_TYPE_LABEL, "X509Certificate"), (ENDPOINT_TYPE_LABEL, "Const")];
    let cluster = convert(&labels, &data, SecretRules::default()).expect("a valid cluster");
    let Credential::X509 { certificate, private_key } = &cluster.credential else { panic!("a certificate") };
    assert_eq!((certificate.as_slice(), private_key.expose_secret()), (CA.as_bytes(), KEY.as_bytes()));
}

#[test]
fn a_tunnelled_cluster_needs_no_endpoint() {
    let labels = [(CREDENTIAL_TYPE_LABEL, "ServiceAccountToken"), (ENDPOINT_TYPE_LABEL, "ClusterProxy")];
    let cluster = convert(&labels, &[("token", "t")], SecretRules::default()).expect("a valid cluster");
    assert_eq!(cluster.endpoint, ClusterEndpoint::ClusterProxy);
}

#[test]
fn trust_is_what_the_keys_say() {
    let other = CA.replace("AAAA", "BBBB");
    let bundle = |text: &str| Ok(Trust::Bundle(text.as_bytes().to_vec()));
    assert_eq!(trust(&[("ca", &other)]), bundle(CA), "ca.crt wins over ca");
    assert_eq!(trust(&[("ca.crt", "-"), ("ca", &other)]), bundle(&other));
    assert_eq!(trust(&[("ca.crt", "")]), Ok(Trust::SystemRoots));
    assert_eq!(trust(&[("ca.crt", ""), ("ca", &other)]), Ok(Trust::SystemRoots), "a present key is not looked past");
    assert_eq!(trust(&[("ca.crt", "-")]), Ok(Trust::SystemRoots));
    assert_eq!(trust(&[("ca.crt", "-"), (INSECURE_KEY, "true\n")]), Ok(Trust::Insecure));
    assert_eq!(trust(&[(INSECURE_KEY, "false")]), bundle(CA));
    assert_eq!(trust(&[(INSECURE_KEY, "true")]), Err(SecretError::InsecureWithCa));
    assert_eq!(trust(&[(INSECURE_KEY, "yes")]), Err(SecretError::InsecureNotBoolean));
    assert_eq!(trust(&[("ca.crt", "\n")]), Err(SecretError::CaNotPem("ca.crt")), "no fall back to other roots");
    assert_eq!(trust(&[("ca.crt", "-"), ("ca", "TUlJ")]), Err(SecretError::CaNotPem("ca")));
}

#[test]
fn further_addresses_have_their_own_trust() {
    let list =
        r#"[{"url": "https://b", "caBundle": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg=="}, {"url": "https://C:6443/"}]"#;
    let cluster = token_cluster(&[(FALLBACKS_KEY, list)]).expect("a valid cluster");
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { panic!("a fixed URL") };
    let found: Vec<_> = fixed.fallbacks.iter().map(|(url, trust)| (url.to_string(), trust.clone())).collect();
    let bundle = Trust::Bundle(b"-----BEGIN CERTIFICATE-----\n".to_vec());
    assert_eq!(found, [("https://b".to_owned(), bundle), ("https://c:6443".to_owned(), Trust::SystemRoots)]);
    let http = token_cluster(&[(FALLBACKS_KEY, r#"[{"url": "http://b"}]"#)]);
    assert_eq!(http.err(), Some(SecretError::Fallback(E::Http)));
}

#[test]
fn missing_ca_is_insecure_only_by_the_operators_rule() {
    let labels = [(CREDENTIAL_TYPE_LABEL, "ServiceAccountToken")];
    let rules = SecretRules { missing_ca: MissingCa::Insecure, ..SecretRules::default() };
    let with = |changes: Texts<'_>| {
        let mut data = vec![("endpoint", "https://m"), ("token", "t")];
        data.extend(changes);
        convert(&labels, &data, rules).expect("a valid cluster").trust
    };
    assert_eq!(with(&[]), Trust::Insecure);
    assert_eq!(with(&[("ca.crt", "")]), Trust::SystemRoots);
    assert_eq!(with(&[(INSECURE_KEY, "false")]), Trust::SystemRoots);
}

#[test]
fn server_name() {
    let name = |text| token_cluster(&[(TLS_SERVER_NAME_KEY, text)]).map(|cluster| cluster.tls_server_name);
    assert_eq!(name("Kubernetes.default.svc\n"), Ok(Some("kubernetes.default.svc".to_owned())));
    assert_eq!(name("::1"), Ok(Some("::1".to_owned())));
    assert_eq!(name(""), Ok(None));
    for wrong in ["https://m", "m:443", "a b", "-a", "é", "a..b"] {
        assert_eq!(name(wrong), Err(SecretError::ServerName), "{wrong}");
    }
}

#[test]
fn unusable_tokens_are_refused_when_they_are_stored() {
    for token in ["", " \n", "-"] {
        assert_eq!(token_cluster(&[("token", token)]).err(), Some(SecretError::NoCredential("token")), "{token:?}");
    }
    for token in ["a b", "a\nb", " a", "é", "a\0"] {
        assert_eq!(token_cluster(&[("token", token)]).err(), Some(SecretError::TokenNotVisible), "{token:?}");
    }
}

#[test]
fn certificates_need_both_parts_in_pem() {
    let labels = [(CREDENTIAL_TYPE_LABEL, "X509Certificate")];
    let error = |certificate, key| {
        let data = [("endpoint", "https://m"), ("tls.crt", certificate), ("tls.key", key)];
        convert(&labels, &data, SecretRules::default()).err()
    };
    assert_eq!(error("", KEY), Some(SecretError::NoCredential("tls.crt")));
    assert_eq!(error(CA, ""), Some(SecretError::NoCredential("tls.key")));
    assert_eq!(error("TUlJ", KEY), Some(SecretError::CertificateNotPem));
    assert_eq!(error(CA, CA), Some(SecretError::PrivateKeyNotPem));
}

#[test]
fn endpoints() {
    let parse = |url| Endpoint::parse(url, false).map(|e| (e.host, e.port, e.base_path, e.authority));
    let ok = |host: &str, port, path: &str, authority: &str| {
        Ok((host.to_owned(), port, path.to_owned(), authority.to_owned()))
    };
    assert_eq!(parse("https://m"), ok("m", 443, "", "m"));
    assert_eq!(parse("HTTPS://M:443/"), ok("m", 443, "", "m:443"));
    assert_eq!(parse("https://10.0.0.1:6443/a%2Fb//"), ok("10.0.0.1", 6443, "/a%2Fb", "10.0.0.1:6443"));
    assert_eq!(parse("https://[0:0::1]:6443/k8s/c-1"), ok("::1", 6443, "/k8s/c-1", "[0:0::1]:6443"));
    assert_eq!(parse("https://[::1]"), ok("::1", 443, "", "[::1]"));

    for (url, error) in [
        ("m:6443", E::NoScheme),
        ("10.0.0.1:6443", E::NoScheme),
        ("m", E::NoScheme),
        ("file:///etc/passwd", E::OtherScheme),
        ("://m", E::OtherScheme),
        ("http://m", E::Http),
        ("https://user:planted-canary@m", E::UserInfo),
        ("https://m?x", E::QueryOrFragment),
        ("https://m/a?x=1", E::QueryOrFragment),
        ("https://m/#x", E::QueryOrFragment),
        ("https://", E::Host),
        ("https:///a", E::Host),
        ("https://:443", E::Host),
        ("https://::1", E::Host),
        ("https://fe80::1:6443", E::Host),
        ("https://[fe80::1%25eth0]", E::Host),
        ("https://[::1", E::Host),
        ("https://[::1]x", E::Host),
        ("https://[m]", E::Host),
        ("https://127.1", E::Host),
        ("https://0x7f.0.0.0x1", E::Host),
        ("https://2130706433", E::Host),
        ("https://1.2.3.4.5", E::Host),
        ("https://a..b", E::Host),
        ("https://m:", E::Port),
        ("https://m:0", E::Port),
        ("https://m:+1", E::Port),
        ("https://m:65536", E::Port),
        ("https://m:x", E::Port),
        ("https://m/a/../b", E::DotSegment),
        ("https://m/%2e%2e", E::DotSegment),
        ("https://m/a b", E::Characters),
        ("https://m\\@evil", E::Characters),
        ("https://m\n", E::Characters),
        ("https://é", E::Characters),
    ] {
        assert_eq!(parse(url), Err(error), "{url}");
    }
    let http = Endpoint::parse("http://m/x", true).expect("allowed");
    assert_eq!((http.scheme, http.port, http.to_string().as_str()), (Scheme::Http, 80, "http://m/x"));
}

#[test]
fn every_refusal_names_the_key_and_the_next_step() {
    let token = |data: Texts<'_>| token_cluster(data).expect_err("refused");
    let typed = |labels: Texts<'_>| convert(labels, &[], SecretRules::default()).expect_err("refused");
    let kind = (CREDENTIAL_TYPE_LABEL, "ServiceAccountToken");
    let x509 = |certificate, key| {
        let data = [("endpoint", "https://m"), ("tls.crt", certificate), ("tls.key", key)];
        convert(&[(CREDENTIAL_TYPE_LABEL, "X509Certificate")], &data, SecretRules::default()).expect_err("refused")
    };
    let exec = |json| {
        let data = [("endpoint", "https://m"), ("exec", json)];
        convert(&[(CREDENTIAL_TYPE_LABEL, "Dynamic")], &data, SecretRules::default()).expect_err("refused")
    };
    let errors = [
        typed(&[]),
        typed(&[(CREDENTIAL_TYPE_LABEL, "X")]),
        exec("planted-canary"),
        exec(r#"{"apiVersion":"planted-canary","command":"aws"}"#),
        exec(r#"{"apiVersion":"client.authentication.k8s.io/v1"}"#),
        typed(&[kind, (ENDPOINT_TYPE_LABEL, "Y")]),
        typed(&[kind]),
        token(&[("proxy-url", "socks4://planted-canary")]),
        token(&[("endpoint", "planted-canary:6443")]),
        token(&[("endpoint", "https://u:planted-canary@m")]),
        token(&[("ca.crt", "planted-canary")]),
        token(&[(FALLBACKS_KEY, "planted-canary")]),
        token(&[(FALLBACKS_KEY, r#"[{"url": "planted-canary"}]"#)]),
        token(&[(FALLBACKS_KEY, r#"[{"url": "https://b/planted-canary"}]"#)]),
        token(&[(FALLBACKS_KEY, r#"[{"url": "https://b", "caBundle": "planted-canary"}]"#)]),
        token(&[(FALLBACKS_KEY, &format!("[{}]", [r#"{"url": "https://b"}"#; 9].join(",")))]),
        token(&[(INSECURE_KEY, "planted-canary")]),
        token(&[(INSECURE_KEY, "true")]),
        token(&[(TLS_SERVER_NAME_KEY, "planted-canary/")]),
        token(&[("token", "")]),
        token(&[("token", "planted canary")]),
        x509("planted-canary", KEY),
        x509(CA, "planted-canary"),
    ];
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(texts.join("\n"));
    assert!(!texts.iter().any(|text| text.contains("canary")), "content must not appear in errors");
}

#[test]
fn credentials_cannot_be_printed() {
    let token = token_cluster(&[]).expect("a valid cluster");
    let data = [("endpoint", "https://m"), ("tls.crt", CA), ("tls.key", KEY)];
    let x509 = convert(&[(CREDENTIAL_TYPE_LABEL, "X509Certificate")], &data, SecretRules::default()).expect("valid");
    assert!(!format!("{token:?} {x509:?}").contains("canary"));
}

proptest! {
    #[test]
    fn any_data_is_a_cluster_or_an_error(
        kind in prop::sample::select(vec!["ServiceAccountToken", "X509Certificate"]),
        keys in prop::collection::btree_map(
            prop::sample::select(vec![ENDPOINT_KEY, CA_KEY, LEGACY_CA_KEY, INSECURE_KEY, TLS_SERVER_NAME_KEY, TOKEN_KEY]),
            prop::collection::vec(any::<u8>(), 0..40),
            0..6,
        ),
    ) {
        let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), kind.to_owned())]);
        let data = keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let secret = SecretView {
            name: "c1",
            uid: "",
            resource_version: "",
            creation_timestamp: Some("yesterday"),
            labels: &labels,
            annotations: &BTreeMap::new(),
            data: &data,
        };
        if let Ok(cluster) = ClusterSpec::from_secret(&secret, SecretRules::default()) {
            prop_assert_eq!(cluster.creation_timestamp, None);
        }
    }

    #[test]
    fn an_endpoint_is_a_uri_with_the_same_parts(url in "(https?://)?[a-zA-Z0-9.:@\\[\\]-]{0,20}[/.%a-z0-9?#]{0,12}") {
        if let Ok(endpoint) = Endpoint::parse(&url, true) {
            let uri: http::Uri = endpoint.to_string().parse().expect("what is accepted can be requested");
            prop_assert_eq!(uri.authority().map(http::uri::Authority::as_str), Some(endpoint.authority.as_str()));
            prop_assert_eq!(uri.port_u16().unwrap_or(endpoint.scheme.default_port()), endpoint.port);
            prop_assert_eq!(uri.path().trim_end_matches('/'), endpoint.base_path.as_str());
            prop_assert_eq!(Endpoint::parse(&endpoint.to_string(), true), Ok(endpoint));
        }
    }
}
