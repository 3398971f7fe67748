//! What a `ManagedCluster` changes in a Secret's cluster, and what it does not change.

use serde_json::{Value, json};

use super::*;
use crate::list_options::ListOptions;
use crate::secret::{CREDENTIAL_TYPE_LABEL, ENDPOINT_TYPE_LABEL, MissingCa};
use crate::virtual_cluster::VirtualCluster;
use crate::weight;

const CA: &str = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

fn managed(configs: &Value) -> ManagedCluster {
    let spec = json!({"hubAcceptsClient": true, "managedClusterClientConfigs": configs});
    serde_json::from_value(json!({"metadata": {"name": "c1"}, "spec": spec})).expect("a ManagedCluster")
}

fn bundle(text: &str) -> String {
    STANDARD.encode(text)
}

/// The cluster of a Secret with other values of its own.
fn cluster(configs: &Value, labels: &[(&str, &str)], rules: SecretRules) -> Result<ClusterSpec, SecretError> {
    of(&managed(configs), &[("endpoint", "https://own"), ("ca", CA), ("token", "t")], labels, rules)
}

fn of(
    managed: &ManagedCluster,
    own: &[(&str, &str)],
    labels: &[(&str, &str)],
    rules: SecretRules,
) -> Result<ClusterSpec, SecretError> {
    let text = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    };
    let data = text(own).into_iter().map(|(key, value)| (key, value.into_bytes())).collect();
    let labels = text(&[&[(CREDENTIAL_TYPE_LABEL, "ServiceAccountToken")], labels].concat());
    let view = SecretView {
        name: "c1",
        uid: "u",
        resource_version: "1",
        creation_timestamp: None,
        labels: &labels,
        annotations: &BTreeMap::new(),
        data: &data,
    };
    managed.cluster(&view, rules)
}

fn url(spec: &ClusterSpec) -> String {
    match &spec.endpoint {
        ClusterEndpoint::Const(fixed) => fixed.url.to_string(),
        ClusterEndpoint::ClusterProxy => "tunnel".to_owned(),
    }
}

#[test]
fn the_first_address_takes_the_secrets_place_and_the_others_follow() {
    let configs = json!([
        {"url": "https://first:6443/base", "caBundle": bundle(CA)},
        {"url": "https://second"},
        {"url": "https://third", "caBundle": null},
    ]);
    let spec = cluster(&configs, &[], SecretRules::default()).expect("a cluster");
    assert_eq!((url(&spec), &spec.trust), ("https://first:6443/base".to_owned(), &Trust::Bundle(CA.into())));
    let ClusterEndpoint::Const(fixed) = &spec.endpoint else { panic!("an address") };
    let fallbacks: Vec<_> = fixed.fallbacks.iter().map(|(url, trust)| (url.to_string(), trust.clone())).collect();
    assert_eq!(
        fallbacks,
        [("https://second".to_owned(), Trust::SystemRoots), ("https://third".to_owned(), Trust::SystemRoots)]
    );
    // The Secret's own take part no more than its endpoint does.
    let own = [("endpoint", "https://own"), (FALLBACKS_KEY, r#"[{"url": "https://other"}]"#), ("token", "t")];
    let managed = managed(&json!([{"url": "https://first"}]));
    let spec = of(&managed, &own, &[], SecretRules::default()).expect("a cluster");
    let ClusterEndpoint::Const(fixed) = &spec.endpoint else { panic!("an address") };
    assert!(fixed.fallbacks.is_empty());
}

#[test]
fn no_bundle_means_the_systems_roots_whatever_the_secret_and_the_rules_say() {
    let rules = SecretRules { missing_ca: MissingCa::Insecure, ..SecretRules::default() };
    let spec = cluster(&json!([{"url": "https://first"}]), &[], rules).expect("a cluster");
    assert_eq!(spec.trust, Trust::SystemRoots);
}

#[test]
fn without_addresses_and_through_tunnels_the_secret_decides() {
    for none in [json!([]), Value::Null] {
        let spec = cluster(&none, &[], SecretRules::default()).expect("a cluster");
        assert_eq!((url(&spec), &spec.trust), ("https://own".to_owned(), &Trust::Bundle(CA.into())));
    }
    let tunnel = [(ENDPOINT_TYPE_LABEL, "ClusterProxy")];
    let spec = cluster(&json!([{"url": "https://first"}]), &tunnel, SecretRules::default()).expect("a cluster");
    assert_eq!(url(&spec), "tunnel");
}

/// A `ManagedCluster` without acceptance: explicitly refused, or not mentioned.
fn strangers(said: Option<bool>) -> ManagedCluster {
    let configs = json!([{"url": "https://thief", "caBundle": bundle(CA)}, {"url": "nowhere"}]);
    let mut spec = json!({"managedClusterClientConfigs": configs});
    if let Some(accepted) = said {
        spec["hubAcceptsClient"] = accepted.into();
    }
    let conditions = json!([{"type": AVAILABLE, "status": "False", "reason": "Strangers"}]);
    serde_json::from_value(json!({"spec": spec, "status": {"conditions": conditions}})).expect("a ManagedCluster")
}

#[test]
fn nothing_counts_of_what_nobody_accepted() {
    for stranger in [strangers(None), strangers(Some(false))] {
        assert_eq!(stranger.addresses(), None);
        let own = [("endpoint", "https://own"), ("ca", CA), ("token", "t")];
        let spec = of(&stranger, &own, &[], SecretRules::default()).expect("a cluster");
        assert_eq!((url(&spec), &spec.trust), ("https://own".to_owned(), &Trust::Bundle(CA.into())));
        let ClusterEndpoint::Const(fixed) = &spec.endpoint else { panic!("an address") };
        assert!(fixed.fallbacks.is_empty());
        let tunnel = [(ENDPOINT_TYPE_LABEL, "ClusterProxy")];
        assert_eq!(url(&of(&stranger, &own, &tunnel, SecretRules::default()).expect("a cluster")), "tunnel");
        let reported = Health { healthy: true, healthy_reason: String::new() };
        assert_eq!(stranger.health(Some(reported.clone())), reported);
        assert_eq!(stranger.health(None), Health::default());
    }
}

#[test]
fn a_secret_without_endpoint_says_what_acceptance_would_change() {
    let error = of(&strangers(None), &[("ca", CA), ("token", "t")], &[], SecretRules::default());
    let text = error.expect_err("no cluster").to_string();
    assert!(text.starts_with("missing label key: api-endpoint") && text.contains("spec.hubAcceptsClient"), "{text}");
    assert!(!text.contains("thief"), "{text}");
}

#[test]
fn what_is_wrong_is_said_to_be_the_managed_clusters() {
    for configs in [
        json!([{"url": "nowhere"}]),
        json!([{"url": ""}]),
        json!([{"url": "https://first", "caBundle": "%%"}]),
        json!([{"url": "https://first", "caBundle": bundle("canary")}]),
        json!([{"url": "https://first"}, {"url": "http://plain"}]),
    ] {
        let error = cluster(&configs, &[], SecretRules::default()).expect_err("no cluster").to_string();
        assert!(error.contains("managedClusterClientConfigs") && !error.contains("canary"), "{error}");
    }
}

#[test]
fn absence_known_to_ocm_beats_what_was_reported() {
    let with = |status: &str| -> ManagedCluster {
        let conditions = json!([{"type": "HubAcceptedManagedCluster", "status": "True"},
            {"type": AVAILABLE, "status": status, "reason": "Lease"}]);
        let spec = json!({"hubAcceptsClient": true});
        serde_json::from_value(json!({"spec": spec, "status": {"conditions": conditions}})).expect("a ManagedCluster")
    };
    let reported = |healthy| Health { healthy, healthy_reason: "Reported".into() };
    for away in ["False", "Unknown"] {
        let health = with(away).health(Some(reported(true)));
        assert_eq!(health, Health { healthy: false, healthy_reason: "Lease".into() }, "{away}");
    }
    assert_eq!(with("True").health(Some(reported(false))), reported(false));
    assert!(with("True").health(None).healthy);
    assert_eq!(ManagedCluster::default().health(Some(reported(true))), reported(true));
    assert!(!ManagedCluster::default().health(None).healthy);
}

/// Its agent, or whoever has a bootstrap credential, writes what it likes.
#[test]
fn of_one_that_is_not_accepted_its_name_is_kept() {
    let read = |accepted: bool| -> ManagedCluster {
        serde_json::from_value(json!({
            "metadata": {"name": "c1", "uid": "u", "resourceVersion": "7", "labels": {"l": "v"}, "annotations": {"a": "v"}},
            "spec": {"hubAcceptsClient": accepted, "managedClusterClientConfigs": [{"url": "https://c1"}]},
            "status": {"conditions": [{"type": "Other", "status": "True"},
                {"type": "ManagedClusterConditionAvailable", "status": "False", "reason": "r"}]},
        }))
        .unwrap()
    };
    let known = read(false).known();
    assert_eq!((known.metadata.name.as_str(), known.metadata.resource_version.as_str()), ("c1", "7"));
    assert!(known.spec == Spec::default() && known.status == Status::default() && known.metadata.labels.is_empty());
    let (accepted, known) = (read(true), read(true).known());
    assert_eq!((known.addresses(), known.health(None)), (accepted.addresses(), accepted.health(None)));
    assert!(known.metadata.labels.is_empty() && known.status.conditions.len() == 1);
}

#[test]
fn of_many_labels_none_is_kept_and_of_annotations_the_alias() {
    let read = |labels: usize, accepted: bool| -> ManagedCluster {
        let labels: BTreeMap<_, _> = (0..labels).map(|number| (format!("l{number}"), "")).collect();
        let metadata = json!({"name": "c1", "labels": labels,
            "annotations": {"a": "v", "cluster.core.oam.dev/cluster-alias": "Cluster One"}});
        let spec = json!({"hubAcceptsClient": accepted, "managedClusterClientConfigs": [{"url": "https://c1"}]});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a ManagedCluster")
    };
    for (labels, accepted, kept) in [(400, true, 400), (600, true, 0), (20, false, 20), (100, false, 0)] {
        let cluster = read(labels, accepted);
        assert!(weight::of_texts(&cluster.metadata.labels) <= HEAVIEST_LABELS);
        let shown = VirtualCluster::of_managed(&cluster).expect("a cluster");
        // One is ours.
        assert_eq!(shown.labels.len(), kept + 1, "{labels} {accepted}");
        assert!(cluster.metadata.annotations.values().eq(["Cluster One"]));
        for (query, is_selected) in [
            ("", true),
            ("labelSelector=l1", kept > 0),
            ("labelSelector=!l1000", kept > 0),
            ("fieldSelector=metadata.name%3Dc1", true),
        ] {
            let options = ListOptions::from_query(Some(query)).expect("options");
            assert_eq!(shown.is_selected(&options.selectors), is_selected, "{labels} {accepted} {query}");
        }
    }
}

#[test]
fn an_alias_that_is_too_long_is_not_kept() {
    for (length, is_kept) in [(1024, true), (1025, false)] {
        let annotations = json!({"cluster.core.oam.dev/cluster-alias": "a".repeat(length)});
        let cluster: ManagedCluster =
            serde_json::from_value(json!({"metadata": {"name": "c1", "annotations": annotations}}))
                .expect("a ManagedCluster");
        assert_eq!(!cluster.metadata.annotations.is_empty(), is_kept, "{length}");
    }
}

#[test]
fn addresses_beyond_the_fallbacks_and_other_conditions_are_not_kept() {
    let configs = vec![json!({"url": "https://c1"}); 1000];
    let mut conditions = vec![json!({"type": "Other"}); 1000];
    conditions.extend([json!({"type": AVAILABLE, "status": "False"}), json!({"type": AVAILABLE})]);
    let cluster: ManagedCluster = serde_json::from_value(json!({
        "spec": {"managedClusterClientConfigs": configs}, "status": {"conditions": conditions},
    }))
    .expect("a ManagedCluster");
    assert_eq!(cluster.spec.managed_cluster_client_configs.len(), 1 + MOST_FALLBACKS);
    assert_eq!(cluster.status.conditions.iter().map(|one| one.status.as_str()).collect::<Vec<_>>(), ["False"]);
}
