use api::secret::{Credential, Scheme};
use proptest::prelude::*;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;
use crate::samples::{CANARY, base64, identity, read_secret, rules, secret as plain, told, with};

/// As `kubefedctl join` writes it.
fn cluster() -> Value {
    json!({
        "apiVersion": "core.kubefed.io/v1beta1", "kind": "KubeFedCluster",
        "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1", "labels": {"team": "a", "a.oam.dev/b": ""}},
        "spec": {"apiEndpoint": "https://10.0.0.7:6443", "caBundle": base64(identity().0.certificate_pem()),
            "secretRef": {"name": "c1-token"}, "proxyURL": "", "disabledTLSValidations": []},
        "status": {"conditions": [{"type": "Offline", "status": "True"}]},
    })
}

fn secret() -> SecretObject {
    read_secret(&plain("c1-token", &[("token", "t\n"), ("ca.crt", "")]))
}

fn read_with(cluster: &Value, rules: &Rules) -> Reading {
    read(cluster, &[&secret()], rules)
}

fn reading(cluster: &Value) -> Reading {
    read_with(cluster, &rules())
}

fn registered(reading: Reading) -> ClusterSecret {
    match reading {
        Reading::Register(cluster) => *cluster,
        other => panic!("{}", told(&other)),
    }
}

fn fixed(cluster: &ClusterSecret) -> &ConstEndpoint {
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { panic!("a tunnel") };
    fixed
}

#[test]
fn a_joined_cluster_is_registered() {
    let cluster = registered(reading(&cluster()));
    assert_eq!(fixed(&cluster).url.to_string(), "https://10.0.0.7:6443");
    let Credential::Token(token) = &cluster.credential else { panic!("no token") };
    assert_eq!((token.expose_secret(), fixed(&cluster).proxy.is_none()), ("t", true));
    assert!(matches!(cluster.trust, Trust::Bundle(_)));
    assert_eq!(cluster.labels.into_iter().collect::<Vec<_>>(), [("team".to_owned(), "a".to_owned())]);
}

#[test]
fn addresses_are_read_as_gos_clients_do() {
    for (address, expected) in [
        ("https://member.example", ("member.example", 443)),
        ("https://member.example:6443/base", ("member.example", 6443)),
        ("member.example", ("member.example", 443)),
        ("member.example/", ("member.example", 443)),
        ("Member.example:6443", ("member.example", 6443)),
        ("10.0.0.7", ("10.0.0.7", 443)),
        ("10.0.0.7:6443", ("10.0.0.7", 6443)),
        ("[fd00::7]:6443", ("fd00::7", 6443)),
        ("[fd00::7]", ("fd00::7", 443)),
    ] {
        let cluster = registered(reading(&with(cluster(), "/spec/apiEndpoint", address)));
        let url = &fixed(&cluster).url;
        assert_eq!((url.host.as_str(), url.port, url.scheme), (expected.0, expected.1, Scheme::Https), "{address}");
    }
    // An address and a port, or an address alone: it is ambiguous.
    assert!(told(&reading(&with(cluster(), "/spec/apiEndpoint", "fd00::7:6443"))).contains("in brackets"));
}

#[test]
fn its_secret_is_waited_for_and_its_end_counts_for_a_cluster_that_goes() {
    assert_eq!(references(&cluster()), [secret().reference()]);
    let other = read_secret(&with(plain("c1-token", &[]), "/metadata/namespace", "other"));
    let waiting = told(&read(&cluster(), &[&other], &rules()));
    assert_eq!(waiting, "waiting: the Secret that spec.secretRef.name names does not exist yet");
    let deleted = with(cluster(), "/metadata/deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_eq!(told(&reading(&deleted)), "registered");
    let Reading::Waiting(gone) = read(&deleted, &[], &rules()) else { panic!("not waiting") };
    assert!(gone.ends());
    for name in ["", "../a", "A"] {
        assert_eq!(references(&with(cluster(), "/spec/secretRef/name", name)), [], "{name}");
    }
}

#[test]
fn all_validations_are_disabled_where_that_is_allowed_and_no_single_one() {
    let disabled = |values: Value| with(cluster(), "/spec/disabledTLSValidations", values);
    let allowed = Rules { allow_insecure: true, ..rules() };
    let tell = |values: Value| told(&read_with(&disabled(values), &allowed));
    assert!(told(&reading(&disabled(json!(["*"])))).contains("--allow-insecure"));
    assert_eq!(registered(read_with(&disabled(json!(["*"])), &allowed)).trust, Trust::Insecure);
    assert!(tell(json!(["SubjectName"])).contains("tls-server-name"));
    assert!(tell(json!(["ValidityPeriod"])).contains("new certificate"));
    assert!(tell(json!(["*", "SubjectName"])).contains("use only *"));
    assert!(tell(json!(["SubjectName", "*"])).contains("tls-server-name"));
    let unknown = tell(json!([CANARY]));
    assert!(unknown.contains("disabledTLSValidations is neither *") && !unknown.contains(CANARY), "{unknown}");
    assert!(tell(json!([["*"]])).contains("disabledTLSValidations is neither *"));
}

#[test]
fn what_makes_no_cluster_is_refused_by_its_field() {
    for (pointer, value, expected) in [
        ("/apiVersion", json!("core.kubefed.io/v1alpha1"), "(v1beta1)"),
        ("/kind", json!("FederatedTypeConfig"), "its kind is not the one"),
        ("/spec", json!(null), "spec.secretRef.name is empty"),
        ("/spec/secretRef/name", json!("c4n4ry/../x"), "spec.secretRef.name names no Secret"),
        ("/spec/secretRef/name", json!([CANARY]), "spec.secretRef.name has an unexpected type"),
        ("/metadata/namespace", json!(null), "spec.secretRef.name names no Secret"),
        ("/spec/apiEndpoint", json!(null), "spec.apiEndpoint is empty"),
        ("/spec/apiEndpoint", json!("http://c4n4ry"), "spec.apiEndpoint: http would send"),
        ("/spec/apiEndpoint", json!("c4n4ry/base"), "spec.apiEndpoint: the URL has no scheme"),
        ("/spec/apiEndpoint", json!("u:c4n4ry@m"), "spec.apiEndpoint: the URL must not have a user"),
        ("/spec/apiEndpoint", json!("m?c4n4ry"), "spec.apiEndpoint: the URL must not have a query"),
        ("/spec/apiEndpoint", json!("169.254.169.254:80"), "spec.apiEndpoint is an address that --deny-endpoints"),
        ("/spec/apiEndpoint", json!("gateway.example:9443"), "spec.apiEndpoint points to the gateway"),
        ("/spec/caBundle", json!("c4n4ry~"), "spec.caBundle is not base64"),
        ("/spec/caBundle", json!(base64(CANARY)), "spec.caBundle: no certificate"),
        ("/spec/proxyURL", json!("ftp://u:c4n4ry@p"), "spec.proxyURL: the URL's scheme"),
        ("/spec/proxyURL", json!("socks5://169.254.169.254"), "spec.proxyURL is an address that --deny-endpoints"),
    ] {
        let told = told(&reading(&with(cluster(), pointer, value)));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
    let proxied = registered(reading(&with(cluster(), "/spec/proxyURL", "socks5://u:p@proxy")));
    assert_eq!(fixed(&proxied).proxy.as_ref().unwrap().redacted(), "socks5://u:xxxxx@proxy:1080");
    let roots = registered(reading(&with(cluster(), "/spec/caBundle", json!(null))));
    assert_eq!(roots.trust, Trust::SystemRoots);
}

#[test]
fn what_is_no_members_token_is_refused() {
    let own = with(plain("c1-token", &[("token", CANARY)]), "/type", "kubernetes.io/service-account-token");
    for (secret, expected) in [
        (own, "is the token of a ServiceAccount of its own control plane"),
        (plain("c1-token", &[("token", "")]), "no key \"token\""),
        (
            plain("c1-token", &[("token", "c4n4ry c4n4ry")]),
            "\"token\" holds characters that are invalid in a bearer token",
        ),
    ] {
        let told = told(&read(&cluster(), &[&read_secret(&secret)], &rules()));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

proptest! {
    /// In any spelling of the host, the token goes there and nowhere else, and never unencrypted.
    #[test]
    fn an_address_is_its_host_and_port(
        scheme in prop_oneof![Just(""), Just("https://"), Just("HTTPS://")],
        host in prop_oneof![
            "[a-z][a-z0-9]{0,9}(\\.[a-z][a-z0-9]{0,9}){0,3}",
            any::<std::net::Ipv4Addr>().prop_map(|address| address.to_string()),
            any::<std::net::Ipv6Addr>().prop_map(|address| format!("[{address}]")),
        ],
        port in proptest::option::of(1_u16..),
        end in prop_oneof![Just(""), Just("/")],
    ) {
        let port_text = port.map(|port| format!(":{port}")).unwrap_or_default();
        let address = format!("{scheme}{host}{port_text}{end}");
        let any_address = Rules::default();
        let cluster = registered(read_with(&with(cluster(), "/spec/apiEndpoint", address), &any_address));
        let url = &fixed(&cluster).url;
        prop_assert_eq!(&url.host, host.trim_matches(['[', ']']));
        prop_assert_eq!((url.port, url.scheme, url.base_path.as_str()), (port.unwrap_or(443), Scheme::Https, ""));
    }

    /// For any text: a cluster at an https URL that parses as the same, or a refusal that does not
    /// repeat the text.
    #[test]
    fn any_address_is_one_or_is_refused(text in "(https?:)?/{0,3}[a-z0-9@:\\[\\]?#%./ -]{0,20}c4n4ry[a-z0-9@:\\[\\]?#%./ -]{0,20}") {
        match reading(&with(cluster(), "/spec/apiEndpoint", text.as_str())) {
            Reading::Register(cluster) => {
                let url = &fixed(&cluster).url;
                prop_assert_eq!(url.scheme, Scheme::Https);
                prop_assert_eq!(&api::secret::Endpoint::parse(&url.to_string(), false).unwrap(), url);
            }
            other => {
                let told = told(&other);
                prop_assert!(!told.contains(CANARY), "{}", told);
            }
        }
    }
}
