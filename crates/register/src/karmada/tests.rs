use api::secret::ProxyScheme;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;
use crate::samples::{CANARY, base64, identity, read_secret, rules, secret as plain, told, with};

/// As `karmadactl join` writes it.
fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": "member1", "uid": "u-1", "labels": {"team": "a", "cluster.core.oam.dev/provider": "x",
            "topology.kubernetes.io/region": "x"}},
        "spec": {"syncMode": "Push", "apiEndpoint": "https://10.0.0.7:6443", "id": "i",
            "secretRef": {"namespace": "karmada-cluster", "name": "member1"},
            "impersonatorSecretRef": {"namespace": "karmada-cluster", "name": "member1-impersonator"}},
    })
}

fn secret(name: &str, data: &[(&str, &str)]) -> SecretObject {
    read_secret(&with(plain(name, data), "/metadata/namespace", "karmada-cluster"))
}

fn own() -> SecretObject {
    let authority = identity().0;
    secret("member1", &[("token", "own"), ("caBundle", &authority.certificate_pem())])
}

fn impersonator() -> SecretObject {
    secret("member1-impersonator", &[("token", "impersonator")])
}

fn read_with(cluster: &Value, secrets: &[SecretObject], rules: &Rules) -> Reading {
    read(cluster, &secrets.iter().collect::<Vec<_>>(), rules)
}

fn reading(cluster: &Value) -> Reading {
    read_with(cluster, &[impersonator(), own()], &rules())
}

fn registered(reading: Reading) -> ClusterSecret {
    match reading {
        Reading::Register(cluster) => *cluster,
        other => panic!("{}", told(&other)),
    }
}

fn token(cluster: &ClusterSecret) -> &str {
    let Credential::Token(token) = &cluster.credential else { panic!("no token") };
    token.expose_secret()
}

fn fixed(cluster: &ClusterSecret) -> &ConstEndpoint {
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { panic!("a tunnel") };
    fixed
}

#[test]
fn a_joined_cluster_is_registered_with_its_own_credential() {
    let cluster = registered(reading(&cluster()));
    assert_eq!((token(&cluster), fixed(&cluster).url.to_string().as_str()), ("own", "https://10.0.0.7:6443"));
    assert!(matches!(cluster.trust, Trust::Bundle(_)));
    assert_eq!(cluster.labels.into_iter().collect::<Vec<_>>(), [("team".to_owned(), "a".to_owned())]);
}

#[test]
fn references_are_those_that_are_read() {
    let names = |cluster: &Value| references(cluster).into_iter().map(|one| one.name).collect::<Vec<_>>();
    assert_eq!(names(&cluster()), ["member1", "member1-impersonator"]);
    assert_eq!(references(&cluster())[0].namespace, "karmada-cluster");
    assert_eq!(names(&with(cluster(), "/spec/secretRef", json!(null))), ["member1-impersonator"]);
    for name in ["", "../other", "a/b", "A", "."] {
        let cluster = with(cluster(), "/spec/secretRef/name", name);
        assert_eq!(names(&cluster), ["member1-impersonator"], "{name}");
        assert!(told(&reading(&cluster)).contains("spec.secretRef names no Secret"), "{name}");
    }
}

#[test]
fn the_impersonators_token_counts_where_there_is_no_other() {
    let alone = with(cluster(), "/spec/secretRef", json!(null));
    let cluster_alone = registered(reading(&alone));
    assert_eq!((token(&cluster_alone), &cluster_alone.trust), ("impersonator", &Trust::SystemRoots));
    let without = secret("member1", &[("caBundle", &identity().0.certificate_pem())]);
    let cluster_without = registered(read_with(&cluster(), &[without, impersonator()], &rules()));
    assert_eq!(token(&cluster_without), "impersonator");
    assert!(matches!(cluster_without.trust, Trust::Bundle(_)));
    // A missing Secret is no reason to use the other.
    let waiting = told(&read_with(&cluster(), &[impersonator()], &rules()));
    assert_eq!(waiting, "waiting: the Secret that spec.secretRef names does not exist yet");
}

#[test]
fn a_cluster_that_is_deleted_stays_until_its_secret_is_gone() {
    let deleted = with(cluster(), "/metadata/deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_eq!(told(&reading(&deleted)), "registered");
    let Reading::Waiting(waiting) = read_with(&deleted, &[impersonator()], &rules()) else { panic!("not waiting") };
    assert!(waiting.ends());
}

#[test]
fn a_pull_cluster_without_endpoint_is_tunnelled() {
    let pull = with(with(cluster(), "/spec/syncMode", "Pull"), "/spec/proxyURL", "http://proxy:3128");
    assert_eq!(fixed(&registered(reading(&pull))).url.host, "10.0.0.7");
    let without = with(pull, "/spec/apiEndpoint", json!(null));
    assert_eq!(registered(reading(&without)).endpoint, ClusterEndpoint::ClusterProxy);
    let no_bundle = with(without, "/spec/secretRef", json!(null));
    assert!(told(&reading(&no_bundle)).contains("no key \"caBundle\""), "the system's roots know no API server");
}

#[test]
fn insecure_clusters_need_to_be_allowed() {
    let insecure = with(cluster(), "/spec/insecureSkipTLSVerification", true);
    assert!(told(&reading(&insecure)).contains("spec.insecureSkipTLSVerification is set, but --allow-insecure"));
    let allowed = Rules { allow_insecure: true, ..rules() };
    assert_eq!(registered(read_with(&insecure, &[own(), impersonator()], &allowed)).trust, Trust::Insecure);
    let verified = registered(read_with(&cluster(), &[own(), impersonator()], &allowed));
    assert!(matches!(verified.trust, Trust::Bundle(_)));
}

#[test]
fn proxies_are_kept_with_basic_credentials() {
    let proxied = |url: &str, headers: Value| {
        let cluster = with(with(cluster(), "/spec/proxyURL", url), "/spec/proxyHeader", headers);
        reading(&cluster)
    };
    let proxy = |reading: Reading| fixed(&registered(reading)).proxy.clone().unwrap();
    for (url, scheme) in [
        ("http://u:p%40ss@proxy:3128", ProxyScheme::Http),
        ("https://u:p%40ss@proxy:3128", ProxyScheme::Https),
        ("socks5://u:p%40ss@proxy:3128", ProxyScheme::Socks5),
    ] {
        let proxy = proxy(proxied(url, json!(null)));
        assert_eq!((proxy.scheme, proxy.credentials.unwrap().password.expose_secret()), (scheme, "p@ss"));
    }
    let basic = json!({"proxy-Authorization": format!("basic {}", base64("u:a:b"))});
    let with_header = proxy(proxied("http://proxy:3128", basic.clone())).credentials.unwrap();
    assert_eq!((with_header.user.as_str(), with_header.password.expose_secret()), ("u", "a:b"));
    for (url, headers) in [
        ("http://proxy:3128", json!({"X-Token": CANARY})),
        ("http://proxy:3128", json!({"Proxy-Authorization": format!("Bearer {CANARY}")})),
        ("http://proxy:3128", json!({"Proxy-Authorization": format!("Basic {CANARY}")})),
        ("http://proxy:3128", json!({"Proxy-Authorization": format!("Basic {}", base64(CANARY))})),
        ("http://proxy:3128", json!({"Proxy-Authorization": format!("Bearer {}", base64("u:c4n4ry"))})),
        ("http://proxy:3128", json!({"X-Authorization": basic["proxy-Authorization"]})),
        ("http://u:p@proxy:3128", basic.clone()),
        ("socks5://proxy:3128", basic.clone()),
        ("http://proxy:3128", json!({"Proxy-Authorization": basic["proxy-Authorization"], "X-Token": CANARY})),
    ] {
        let told = told(&proxied(url, headers));
        assert!(told.contains("spec.proxyHeader supports only one header") && !told.contains(CANARY), "{told}");
    }
    assert_eq!(told(&proxied("", json!({"X-Token": "a"}))), "registered", "headers of no proxy");
}

#[test]
fn where_it_is_becomes_labels() {
    let mut placed = cluster();
    placed["spec"]["region"] = "eu west".into();
    placed["spec"]["provider"] = "huaweicloud".into();
    placed["spec"]["zones"] = json!(["a-1", "", "b 2", "c-3", 4]);
    placed["spec"]["zone"] = "old".into();
    let labels = registered(reading(&placed)).labels;
    assert_eq!(labels.get(ZONE_LABEL).map(String::as_str), Some("a-1__c-3"));
    assert_eq!(labels.get(PROVIDER_LABEL).map(String::as_str), Some("huaweicloud"));
    assert_eq!(labels.get(REGION_LABEL), None, "no label can say it");
    let older = with(with(placed, "/spec/zones", json!(null)), "/spec/region", "eu");
    let labels = registered(reading(&older)).labels;
    assert_eq!((labels[ZONE_LABEL].as_str(), labels[REGION_LABEL].as_str()), ("old", "eu"));
}

#[test]
fn what_makes_no_cluster_is_refused_by_its_field() {
    for (pointer, value, expected) in [
        ("/apiVersion", json!("cluster.karmada.io/v1beta1"), "(v1alpha1)"),
        ("/apiVersion", json!("cluster.x-k8s.io/v1beta1"), "its kind is not the one"),
        ("/spec/syncMode", json!(null), "spec.syncMode is empty"),
        ("/spec/syncMode", json!(CANARY), "spec.syncMode is neither Push nor Pull"),
        ("/spec/apiEndpoint", json!(""), "spec.apiEndpoint is empty"),
        ("/spec/apiEndpoint", json!([CANARY]), "spec.apiEndpoint has an unexpected type"),
        ("/spec/apiEndpoint", json!("http://c4n4ry"), "spec.apiEndpoint: http would send"),
        ("/spec/apiEndpoint", json!("https://u:c4n4ry@m"), "spec.apiEndpoint: the URL must not have a user"),
        ("/spec/apiEndpoint", json!("c4n4ry/path"), "spec.apiEndpoint: the URL has no scheme"),
        ("/spec/apiEndpoint", json!("169.254.169.254"), "spec.apiEndpoint is an address that --deny-endpoints"),
        ("/spec/apiEndpoint", json!("gateway.example:9443"), "spec.apiEndpoint points to the gateway"),
        ("/spec/proxyURL", json!("ftp://u:c4n4ry@p"), "spec.proxyURL: the URL's scheme"),
        ("/spec/proxyURL", json!("http://u:c4n4ry@[fe80::1]:1"), "spec.proxyURL is an address that --deny-endpoints"),
        ("/spec/proxyHeader", json!(CANARY), "registered"),
        ("/spec/secretRef/namespace", json!("a.b"), "spec.secretRef names no Secret"),
        ("/spec/secretRef/namespace", json!("vela-system"), "outside of the namespace karmada-cluster"),
        ("/spec/secretRef/name", json!([CANARY]), "spec.secretRef.name has an unexpected type"),
        ("/spec/insecureSkipTLSVerification", json!(CANARY), "insecureSkipTLSVerification has an unexpected type"),
        ("/spec/zones", json!(CANARY), "spec.zones has an unexpected type"),
    ] {
        let told = told(&reading(&with(cluster(), pointer, value)));
        assert!(told.contains(expected) && !told.contains(CANARY), "{expected}: {told}");
    }
    let neither = with(with(cluster(), "/spec/secretRef", json!(null)), "/spec/impersonatorSecretRef", json!(null));
    assert!(told(&reading(&neither)).contains("spec.secretRef is empty"));
}

#[test]
fn what_a_secret_lacks_is_refused_by_its_key() {
    let authority = identity().0.certificate_pem();
    for (data, expected) in [
        (
            &[("token", "c4n4ry c4n4ry"), ("caBundle", &authority)][..],
            "\"token\" holds characters that are invalid in a bearer token",
        ),
        (&[("token", CANARY), ("caBundle", CANARY)], "caBundle: no certificate found"),
        (&[("caBundle", &authority)], "no key \"token\""),
    ] {
        let told = told(&read_with(
            &with(cluster(), "/spec/impersonatorSecretRef", json!(null)),
            &[secret("member1", data)],
            &rules(),
        ));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn tokens_of_the_control_plane_are_sent_nowhere() {
    for name in ["member1", "member1-impersonator"] {
        let mut stolen = plain(name, &[("token", CANARY)]);
        stolen["metadata"]["namespace"] = "karmada-cluster".into();
        stolen["type"] = "kubernetes.io/service-account-token".into();
        let other = if name == "member1" { impersonator() } else { secret("member1", &[("caBundle", "")]) };
        let told = told(&read_with(&cluster(), &[read_secret(&stolen), other], &rules()));
        assert!(told.contains("is the token of a ServiceAccount of its own control plane"), "{told}");
    }
}
