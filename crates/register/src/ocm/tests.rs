use api::secret::Credential;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::*;
use crate::samples::{CANARY, base64, identity, read_secret, rules, secret as plain, told, with};

fn config(url: &str) -> Value {
    json!({"url": url, "caBundle": base64(identity().0.certificate_pem())})
}

fn cluster(configs: &[Value]) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1", "uid": "u-1", "labels": {
            "cluster.open-cluster-management.io/clusterset": "blue", "cluster.core.oam.dev/a": ""}},
        "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60, "managedClusterClientConfigs": configs},
    })
}

/// The Secret as the add-on agent of `ManagedServiceAccounts` writes it.
fn secret() -> Value {
    let authority = identity().0.certificate_pem();
    let mut secret = plain("cluster-gateway", &[("token", "t"), ("ca.crt", &authority)]);
    secret["metadata"]["namespace"] = "c1".into();
    secret["metadata"]["labels"] = json!({TOKEN_LABEL: "true"});
    secret
}

fn reading(cluster: &Value, secret: &Value, reach: Reach) -> Reading {
    read(cluster, Some(&read_secret(secret)), reach, &rules())
}

fn registered(cluster: &Value, reach: Reach) -> ClusterSecret {
    match reading(cluster, &secret(), reach) {
        Reading::Register(cluster) => *cluster,
        other => panic!("{}", told(&other)),
    }
}

fn urls(cluster: &ClusterSecret) -> Vec<String> {
    let ClusterEndpoint::Const(fixed) = &cluster.endpoint else { return Vec::new() };
    let fallbacks = fixed.fallbacks.iter().map(|(url, _)| url);
    std::iter::once(&fixed.url).chain(fallbacks).map(ToString::to_string).collect()
}

#[test]
fn an_accepted_cluster_is_registered_at_the_addresses_it_tells() {
    let told = [config("https://a:6443"), json!({"url": "https://b:6443"})];
    let cluster = registered(&cluster(&told), Reach::Auto);
    assert_eq!(urls(&cluster), ["https://a:6443", "https://b:6443"]);
    let document = cluster.document(None, "c1").unwrap();
    assert_eq!(document["data"]["fallback-endpoints"], base64(r#"[{"url":"https://b:6443"}]"#));
    assert!(matches!(cluster.trust, Trust::Bundle(_)));
    let Credential::Token(token) = &cluster.credential else { panic!("no token") };
    assert_eq!(token.expose_secret(), "t");
    assert_eq!(cluster.labels.into_keys().collect::<Vec<_>>(), ["cluster.open-cluster-management.io/clusterset"]);
}

#[test]
fn the_first_address_that_can_be_used_is_the_endpoint() {
    let told = [
        json!({"url": "http://a", "caBundle": ""}),
        json!({"url": "https://[fe80::1]"}),
        json!({"url": "https://b", "caBundle": base64(CANARY)}),
        json!({"url": ["https://c"]}),
        json!(CANARY),
        json!({"url": " https://d/base "}),
        config("https://e/base/"),
        config("https://f/other"),
    ];
    let first = registered(&cluster(&told), Reach::Direct);
    assert_eq!(urls(&first), ["https://d/base", "https://e/base"]);
    assert_eq!(first.trust, Trust::SystemRoots);
    let many: Vec<_> = (0..100).map(|n| json!({"url": format!("https://m{n}")})).collect();
    assert_eq!(urls(&registered(&cluster(&many), Reach::Auto)).len(), 9);
}

#[test]
fn the_tunnel_is_for_clusters_without_an_address() {
    let (none, one) = (cluster(&[]), cluster(&[config("https://a")]));
    for (cluster, reach, is_tunnel) in [
        (&none, Reach::Auto, true),
        (&one, Reach::Auto, false),
        (&one, Reach::Direct, false),
        (&none, Reach::Tunnel, true),
        (&one, Reach::Tunnel, true),
    ] {
        let registered = registered(cluster, reach);
        assert_eq!(registered.endpoint == ClusterEndpoint::ClusterProxy, is_tunnel, "{reach:?}");
        assert!(matches!(registered.trust, Trust::Bundle(_)));
    }
    let waiting = told(&reading(&none, &secret(), Reach::Direct));
    assert_eq!(waiting, "waiting: it has no address yet (spec.managedClusterClientConfigs)");
    let denied = cluster(&[json!({"url": "https://169.254.169.254"})]);
    assert!(told(&reading(&denied, &secret(), Reach::Auto)).contains("--deny-endpoints"), "no reason for the tunnel");
}

#[test]
fn a_no_is_a_no_whatever_else_is_there() {
    let good = cluster(&[config("https://a")]);
    for (refused, expected) in [
        (with(good.clone(), "/spec/hubAcceptsClient", false), Waiting::NotAccepted),
        (with(good.clone(), "/spec/hubAcceptsClient", json!(null)), Waiting::NotAccepted),
        (with(good.clone(), "/spec", json!(null)), Waiting::NotAccepted),
        (with(good.clone(), "/metadata/deletionTimestamp", "2026-01-01T00:00:00Z"), Waiting::Leaving),
    ] {
        // Not even a mistake elsewhere is reported.
        for secret in [secret(), plain("s", &[])] {
            let Reading::Waiting(waiting) = reading(&refused, &secret, Reach::Auto) else { panic!("{expected}") };
            assert_eq!((waiting, waiting.ends()), (expected, true));
        }
    }
    let Reading::Waiting(waiting) = read(&good, None, Reach::Auto, &rules()) else { panic!("no token, but a cluster") };
    assert_eq!((waiting, waiting.ends()), (Waiting::NoToken, false));
}

#[test]
fn what_makes_no_cluster_is_refused() {
    let good = cluster(&[config("https://a")]);
    for (pointer, value, expected) in [
        ("/apiVersion", json!("cluster.open-cluster-management.io/v1alpha1"), "(v1)"),
        ("/kind", json!("ManagedClusterSet"), "its kind is not the one"),
        ("/spec/hubAcceptsClient", json!("c4n4ry"), "spec.hubAcceptsClient has an unexpected type"),
        (
            "/spec/managedClusterClientConfigs",
            json!({"c4n4ry": 1}),
            "managedClusterClientConfigs has an unexpected type",
        ),
        ("/spec/managedClusterClientConfigs", json!([CANARY]), "Configs' url: the URL has no scheme"),
        ("/spec/managedClusterClientConfigs/0/url", json!("http://c4n4ry"), "Configs' url: http would send"),
        ("/spec/managedClusterClientConfigs/0/url", json!([CANARY]), "Configs' url has an unexpected type"),
        ("/spec/managedClusterClientConfigs/0/url", json!("https://gateway.example:9443"), "points to the gateway"),
        ("/spec/managedClusterClientConfigs/0/caBundle", json!("c4n4ry~"), "Configs' caBundle is not base64"),
        ("/spec/managedClusterClientConfigs/0/caBundle", json!(base64(CANARY)), "Configs' caBundle: no certificate"),
    ] {
        let told = told(&reading(&with(good.clone(), pointer, value), &secret(), Reach::Auto));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn only_a_managed_service_accounts_token_counts() {
    for (pointer, value, reach, expected) in [
        ("/metadata/namespace", json!("c2"), Reach::Auto, "does not belong to a ManagedServiceAccount"),
        ("/metadata/labels", json!({}), Reach::Auto, "does not belong to a ManagedServiceAccount"),
        ("/metadata/labels", json!({TOKEN_LABEL: "false"}), Reach::Auto, "does not belong to a ManagedServiceAccount"),
        (
            "/type",
            json!("kubernetes.io/service-account-token"),
            Reach::Auto,
            "a ServiceAccount of its own control plane",
        ),
        ("/data/token", json!(""), Reach::Auto, "no key \"token\""),
        ("/data/token", json!(base64("c4n4ry c4n4ry")), Reach::Auto, "\"token\" holds characters"),
        ("/data/ca.crt", json!(""), Reach::Tunnel, "no key \"ca.crt\""),
        ("/data/ca.crt", json!(base64(CANARY)), Reach::Tunnel, "ca.crt: no certificate"),
    ] {
        let told = told(&reading(&cluster(&[config("https://a")]), &with(secret(), pointer, value), reach));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn ways_to_reach_members_have_their_names() {
    for (text, expected) in [("auto", Reach::Auto), ("direct", Reach::Direct), ("tunnel", Reach::Tunnel)] {
        assert_eq!(text.parse(), Ok(expected));
    }
    assert_eq!("Tunnel".parse::<Reach>(), Err(InvalidReach));
}
