//! A written Secret reads back as the same cluster.

use proptest::option;
use proptest::prelude::*;

use super::super::{
    ConstEndpoint, Endpoint, ExecApiVersion, ExecConfig, MOST_FALLBACKS, ProxyCredentials, ProxyScheme, ProxyUrl,
    SecretRules,
};
use super::*;
use crate::hub_object::{self, SecretObject};

const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
const KEY: &str = "-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n";

fn host() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z][a-z0-9_]{0,8}(\\.[a-z]{1,5}){0,2}", "10\\.0\\.[1-9]\\.[1-9]", "\\[2001:db8::[1-9a-f]\\]"]
}

fn url() -> impl Strategy<Value = Endpoint> {
    let path = "(/[a-zA-Z0-9:_-]{1,6}){0,2}";
    ("https?", host(), option::of(1_u16..), path).prop_map(|(scheme, host, port, path)| {
        let port = port.map(|port| format!(":{port}")).unwrap_or_default();
        Endpoint::parse(&format!("{scheme}://{host}{port}{path}"), true).expect("an endpoint")
    })
}

fn proxy() -> impl Strategy<Value = ProxyUrl> {
    let scheme = prop::sample::select(vec![ProxyScheme::Http, ProxyScheme::Https, ProxyScheme::Socks5]);
    let credentials =
        (".{0,20}", ".{0,20}").prop_map(|(user, password)| ProxyCredentials { user, password: password.into() });
    (scheme, host(), 1_u16.., option::of(credentials)).prop_map(|(scheme, host, port, credentials)| ProxyUrl {
        scheme,
        host: host.trim_matches(['[', ']']).to_owned(),
        port,
        credentials,
    })
}

fn endpoint() -> impl Strategy<Value = ClusterEndpoint> {
    let others = prop::collection::vec((host(), verified()), 0..=MOST_FALLBACKS);
    let fixed = (url(), option::of(proxy()), others).prop_map(|(url, proxy, others)| {
        let other = |(host, trust)| {
            let other = Endpoint::parse(&format!("https://{host}{}", url.base_path), false).expect("an endpoint");
            (other, trust)
        };
        let fallbacks = others.into_iter().map(other).collect();
        ClusterEndpoint::Const(ConstEndpoint { url, proxy, fallbacks })
    });
    prop_oneof![4 => fixed, 1 => Just(ClusterEndpoint::ClusterProxy)]
}

fn pem(block: &'static str) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..20).prop_map(move |mut text| {
        text.push(b'\n');
        text.extend_from_slice(block.as_bytes());
        text
    })
}

fn verified() -> impl Strategy<Value = Trust> {
    prop_oneof![pem(CERTIFICATE).prop_map(Trust::Bundle), Just(Trust::SystemRoots)]
}

fn trust() -> impl Strategy<Value = Trust> {
    prop_oneof![2 => verified(), 1 => Just(Trust::Insecure)]
}

fn exec() -> impl Strategy<Value = ExecConfig> {
    let api_version = prop::sample::select(vec![ExecApiVersion::V1, ExecApiVersion::V1Beta1]);
    let args = prop::collection::vec("[^\\x00]{0,12}", 0..4);
    let env = prop::collection::vec(("[A-Z_]{1,8}", "[^\\x00]{0,12}"), 0..4);
    let hint = option::of("[a-z]( ?[a-z]){0,8}");
    (api_version, "[a-z/ -]{1,20}", args, env, any::<bool>(), hint).prop_map(
        |(api_version, command, args, env, provide_cluster_info, install_hint)| ExecConfig {
            api_version,
            command,
            args,
            env: env.into_iter().map(|(name, value)| (name, value.into())).collect(),
            provide_cluster_info,
            install_hint,
        },
    )
}

fn credential() -> impl Strategy<Value = Credential> {
    prop_oneof![
        "[!-~]{1,64}".prop_map(|token| Credential::Token(token.into())),
        (pem(CERTIFICATE), pem(KEY))
            .prop_map(|(certificate, key)| Credential::X509 { certificate, private_key: key.into() }),
        exec().prop_map(Credential::Exec),
    ]
}

fn secret() -> impl Strategy<Value = ClusterSecret> {
    let server_name = option::of(prop_oneof!["[a-z][a-z0-9]{0,8}(\\.[a-z]{1,5}){0,2}", "2001:db8::[1-9a-f]"]);
    let labels = prop::collection::btree_map("example\\.com/[a-z]{1,5}", "[a-zA-Z0-9]{0,8}", 0..3);
    let texts = (option::of(".{1,20}"), option::of("[^\\x00]{1,30}"));
    (endpoint(), trust(), server_name, credential(), labels, texts).prop_map(
        |(endpoint, trust, tls_server_name, credential, labels, (alias, identity_rules))| ClusterSecret {
            tls_server_name,
            labels,
            alias,
            identity_rules,
            ..ClusterSecret::new(endpoint, trust, credential)
        },
    )
}

/// All fields of a credential.
fn exposed(credential: &Credential) -> String {
    match credential {
        Credential::Token(token) => token.expose_secret().to_owned(),
        Credential::X509 { certificate, private_key } => format!("{certificate:?} {:?}", private_key.expose_secret()),
        Credential::Exec(exec) => {
            let env: Vec<_> = exec.env.iter().map(|(name, value)| (name, value.expose_secret())).collect();
            let ExecConfig { api_version, command, args, provide_cluster_info, install_hint, .. } = exec;
            format!("{api_version} {command:?} {args:?} {env:?} {provide_cluster_info} {install_hint:?}")
        }
    }
}

fn read(document: &Value, rules: SecretRules) -> ClusterSpec {
    let object: SecretObject = hub_object::parse(document.to_string().as_bytes()).expect("a Secret");
    ClusterSpec::from_secret(&object.view(), rules).expect("a cluster")
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_as_the_same(secret in secret()) {
        let document = secret.document(Some("clusters"), "c1").expect("written");
        for missing_ca in [MissingCa::SystemRoots, MissingCa::Insecure] {
            let cluster = read(&document, SecretRules { allow_http: true, missing_ca });
            prop_assert_eq!(cluster.name.as_str(), "c1");
            prop_assert_eq!(&cluster.endpoint, &secret.endpoint);
            prop_assert_eq!(&cluster.trust, &secret.trust);
            prop_assert_eq!(&cluster.tls_server_name, &secret.tls_server_name);
            prop_assert_eq!(cluster.credential.kind(), secret.credential.kind());
            prop_assert_eq!(exposed(&cluster.credential), exposed(&secret.credential));
            prop_assert_eq!((&cluster.alias, &cluster.identity_rules), (&secret.alias, &secret.identity_rules));
            prop_assert!(secret.labels.iter().all(|(key, value)| cluster.labels.get(key) == Some(value)));
        }
    }
}

fn token_cluster() -> ClusterSecret {
    ClusterSecret::new(ClusterEndpoint::ClusterProxy, Trust::SystemRoots, Credential::Token("t".to_owned().into()))
}

#[test]
fn what_no_gateway_could_read_is_not_written() {
    let with = |change: fn(&mut ClusterSecret)| {
        let mut secret = token_cluster();
        change(&mut secret);
        secret.document(None, "c1").err()
    };
    assert_eq!(with(|_| {}), None);
    assert_eq!(with(|secret| secret.trust = Trust::Bundle(b"TUlJ".to_vec())), Some(SecretError::CaNotPem(CA_KEY)));
    assert_eq!(with(|secret| secret.tls_server_name = Some("m:443".to_owned())), Some(SecretError::ServerName));
    assert_eq!(
        with(|secret| secret.credential = Credential::Token("a b".to_owned().into())),
        Some(SecretError::TokenNotVisible)
    );
    assert_eq!(token_cluster().document(None, "no name").err(), Some(SecretError::Name));
}

#[test]
fn an_address_that_is_not_verified_is_not_written_among_the_others() {
    let at = |url: &str| Endpoint::parse(url, false).expect("an endpoint");
    let fallbacks = vec![(at("https://b"), Trust::Insecure)];
    let mut secret = token_cluster();
    secret.endpoint = ClusterEndpoint::Const(ConstEndpoint { url: at("https://a"), proxy: None, fallbacks });
    let document = secret.document(None, "c1").expect("written");
    assert!(document["data"][FALLBACKS_KEY].is_null(), "{document}");
}

#[test]
fn labels_of_the_contract_are_not_for_others_to_set() {
    let labels = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), "Dynamic".to_owned())]);
    let document = ClusterSecret { labels, ..token_cluster() }.document(None, "c1").expect("written");
    assert_eq!(document["metadata"]["labels"][CREDENTIAL_TYPE_LABEL], "ServiceAccountToken");
    assert!(document["metadata"]["namespace"].is_null());
}

#[test]
fn which_member_it_is_and_whose_token_are_said_in_annotations() {
    let (member_uid, member_account) = (Some("u-1".to_owned()), Some("ns/berlin".to_owned()));
    let document =
        ClusterSecret { member_uid, member_account, ..token_cluster() }.document(None, "c1").expect("written");
    let annotations = &document["metadata"]["annotations"];
    assert_eq!(annotations["cluster.core.oam.dev/member-uid"], "u-1");
    assert_eq!(annotations["cluster.core.oam.dev/member-account"], "ns/berlin");
}
