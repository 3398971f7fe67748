use serde_json::{Value, json};

use super::*;
use crate::samples::{CANARY, kubeconfig, read_secret, rules, secret, told, with};

fn with_server(server: &str) -> String {
    with(kubeconfig(), "/clusters/0/cluster/server", server).to_string()
}

fn read_of(secret: &Value) -> Reading {
    read(&read_secret(secret), &rules())
}

fn server(secret: &Value) -> String {
    let Reading::Register(cluster) = read_of(secret) else { panic!("{}", told(&read_of(secret))) };
    let document = cluster.document(None, "c1").unwrap();
    let endpoint = read_secret(&with(document, "/metadata/namespace", "ns"));
    String::from_utf8(endpoint.value("endpoint").unwrap().to_vec()).unwrap()
}

#[test]
fn the_first_key_that_holds_something_counts() {
    let (a, b, c) = (with_server("https://a"), with_server("https://b"), with_server("https://c"));
    assert_eq!(server(&secret("s", &[("config", &c), ("value", &b), ("kubeconfig", &a)])), "https://a");
    assert_eq!(server(&secret("s", &[("config", &c), ("value", &b), ("kubeconfig", "")])), "https://b");
    assert_eq!(server(&secret("s", &[("config", &c)])), "https://c");
    // An invalid first key does not lead to the next.
    let mistaken = secret("s", &[("kubeconfig", "{"), ("value", &b)]);
    assert!(told(&read_of(&mistaken)).contains("near line"));
}

#[test]
fn a_workspace_of_kcp_is_a_member() {
    let workspace = "https://kcp.example:6443/clusters/root:org:ws";
    assert_eq!(server(&secret("s", &[("kubeconfig", &with_server(workspace))])), workspace);
}

#[test]
fn labels_are_taken_but_not_those_of_the_contract() {
    let labels = json!({"team": "a", "cluster.core.oam.dev/kubeconfig": "true"});
    let secret = with(secret("s", &[("value", &with_server("https://a"))]), "/metadata/labels", labels);
    let Reading::Register(cluster) = read_of(&secret) else { panic!("{}", told(&read_of(&secret))) };
    assert_eq!(cluster.labels.into_iter().collect::<Vec<_>>(), [("team".to_owned(), "a".to_owned())]);
}

#[test]
fn what_is_no_kubeconfig_is_refused() {
    let cluster = json!({"cluster.core.oam.dev/cluster-credential-type": "ServiceAccountToken"});
    let good = secret("s", &[("value", &with_server("https://a"))]);
    for (secret, expected) in [
        (secret("s", &[("token", CANARY)]), "has no key \"kubeconfig\""),
        (secret("s", &[("kubeconfig", CANARY)]), "near line"),
        (secret("s", &[("kubeconfig", &with_server("https://169.254.169.254"))]), "--deny-endpoints"),
        (with(good, "/metadata/labels", cluster), "itself registers a cluster"),
    ] {
        let told = told(&read_of(&secret));
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}
