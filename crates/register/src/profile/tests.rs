use super::*;
use crate::outcome::Outcome;
use crate::samples::with;

const NOW: &str = "2026-05-01T00:00:00Z";

fn gateway() -> GatewayAddress {
    GatewayAddress { url: "https://gateway:9443".to_owned(), ca: Some(b"-----BEGIN CERTIFICATE-----\n".to_vec()) }
}

fn registered(labels: &[(&str, &str)], alias: Option<&str>) -> Registered {
    let mut labels: BTreeMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    labels.insert(CREDENTIAL_TYPE_LABEL.to_owned(), "ServiceAccountToken".to_owned());
    let annotations = alias.map(|alias| (ALIAS_ANNOTATION.to_owned(), alias.to_owned()));
    Registered::read("berlin", &labels, &annotations.into_iter().collect()).unwrap()
}

fn well() -> ObservedMember {
    let mut record = Record::default();
    record.take(Outcome::Healthy);
    ObservedMember {
        health: record.health().cloned(),
        version: Some("v1.35.4".to_owned()),
        properties: Some(Vec::new()),
    }
}

fn property(name: &str, value: &str) -> Property {
    Property { name: name.to_owned(), value: value.to_owned() }
}

#[test]
fn a_profile_says_whose_it_is_and_what_people_call_the_cluster() {
    let cluster = registered(&[("cluster.open-cluster-management.io/clusterset", "eu")], Some("Berlin"));
    assert_eq!(
        cluster.object("fleet", "vela-system", None),
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": "berlin", "namespace": "fleet",
                "labels": {"x-k8s.io/cluster-manager": "cluster-gateway", "multicluster.x-k8s.io/clusterset": "eu"},
                "annotations": {"cluster.core.oam.dev/secret-namespace": "vela-system"}},
            "spec": {"clusterManager": {"name": "cluster-gateway"}, "displayName": "Berlin"},
        })
    );
    let own = [("multicluster.x-k8s.io/clusterset", "own"), ("cluster.open-cluster-management.io/clusterset", "eu")];
    let object = registered(&own, None).object("fleet", "vela-system", Some("u-1"));
    assert_eq!(object["metadata"]["labels"]["multicluster.x-k8s.io/clusterset"], "own");
    assert_eq!((&object["metadata"]["uid"], &object["spec"]["displayName"]), (&"u-1".into(), &Value::Null));
}

#[test]
fn its_status_leads_through_the_gateway() {
    let cluster = registered(&[("topology.kubernetes.io/region", "north")], None);
    let mut seen = well();
    seen.properties = Some(vec![property("clusterset.k8s.io", "eu")]);
    let before = json!({"metadata": {"uid": "u-1"}});
    assert_eq!(
        cluster.status("fleet", &gateway(), &seen, &before, NOW),
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": "berlin", "namespace": "fleet", "uid": "u-1"},
            "status": {
                "conditions": [{"type": "ControlPlaneHealthy", "status": "True", "reason": "Healthy",
                    "message": "the member's API server is ready", "lastTransitionTime": NOW}],
                "version": {"kubernetes": "v1.35.4"},
                "properties": [{"name": "cluster.clusterset.k8s.io", "value": "berlin"},
                    {"name": "clusterset.k8s.io", "value": "eu"}, {"name": "region", "value": "north"}],
                "accessProviders": [{"name": "cluster-gateway", "cluster": {
                    "server":
                        "https://gateway:9443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy",
                    "certificate-authority-data": "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
                    "extensions": [{"name": "client.authentication.k8s.io/exec",
                        "extension": {"clusterName": "berlin"}}]}}],
            },
        })
    );
    let bare = GatewayAddress { ca: None, ..gateway() };
    let status = cluster.status("fleet", &bare, &ObservedMember::default(), &Value::Null, NOW);
    let told = &status["status"]["accessProviders"][0]["cluster"];
    assert_eq!(told.get("certificate-authority-data"), None);
    assert_eq!(status["status"].get("version"), None);
    assert_eq!(status["status"]["conditions"][0]["status"], "Unknown");
    assert_eq!(status["status"]["conditions"][0]["reason"], "NotProbed");
}

/// A restart, a new leader, and an observation with the same result produce the same document.
#[test]
fn what_is_not_news_is_the_same_document() {
    let cluster = registered(&[], None);
    let mut seen = well();
    seen.properties = Some(vec![property("a", "1")]);
    let first = cluster.status("fleet", &gateway(), &seen, &Value::Null, NOW);
    let later = "2026-05-01T01:00:00Z";
    assert_eq!(cluster.status("fleet", &gateway(), &seen, &first, later), first, "another look");
    assert_eq!(cluster.status("fleet", &gateway(), &ObservedMember::default(), &first, later), first, "a restart");
    let mut record = Record::default();
    for _ in 0..2 {
        record.take(Outcome::Unreachable("away".to_owned()));
    }
    let away = ObservedMember { health: record.health().cloned(), ..ObservedMember::default() };
    let status = cluster.status("fleet", &gateway(), &away, &first, later);
    let condition = &status["status"]["conditions"][0];
    assert_eq!((&condition["status"], &condition["lastTransitionTime"]), (&"False".into(), &later.into()));
    assert_eq!(status["status"]["version"], first["status"]["version"], "what was known of it is known still");
    assert_eq!(status["status"]["properties"], first["status"]["properties"]);
    let forgotten = ObservedMember { properties: Some(Vec::new()), ..well() };
    let status = cluster.status("fleet", &gateway(), &forgotten, &first, later);
    assert_eq!(status["status"]["properties"].as_array().unwrap().len(), 1, "the member says it no more");
}

#[test]
fn a_members_properties_count_after_its_secrets_and_only_as_the_kind_takes_them() {
    let long = "x".repeat(1025);
    let claims = json!({"items": [
        {"metadata": {"name": "region"}, "spec": {"value": "the member's"}},
        {"metadata": {"name": "platform"}, "spec": {"value": "AWS"}},
        {"metadata": {"name": "platform"}, "spec": {"value": "another"}},
        {"metadata": {"name": "empty"}, "spec": {"value": ""}},
        {"metadata": {"name": "long"}, "spec": {"value": long}},
        {"metadata": {"name": "wide"}, "spec": {"value": "ü".repeat(1024)}},
        {"metadata": {"name": "cluster.clusterset.k8s.io"}, "spec": {"value": "id-1"}},
        {"metadata": {"name": "odd"}, "spec": {"value": {"a": 1}}},
        "odd",
    ]});
    let labels = [
        ("topology.kubernetes.io/region", "north"),
        ("topology.kubernetes.io/zone", "a-b"),
        ("cluster.core.oam.dev/provider", "aws"),
        ("team", "x"),
    ];
    let seen = ObservedMember { properties: Some(read_properties(&claims)), ..well() };
    let status = registered(&labels, None).status("fleet", &gateway(), &seen, &Value::Null, NOW);
    let told: Vec<_> = status["status"]["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|property| {
            (
                property["name"].as_str().unwrap(),
                property["value"].as_str().unwrap().chars().take(8).collect::<String>(),
            )
        })
        .collect();
    let expected = [
        ("cluster.clusterset.k8s.io", "id-1"),
        ("platform", "AWS"),
        ("provider", "aws"),
        ("region", "north"),
        ("wide", "üüüüüüüü"),
        ("zones", "a-b"),
    ];
    assert_eq!(told, expected.map(|(name, value)| (name, value.to_owned())));
    let crowd: Vec<_> = (0..1000).map(|number| property(&format!("p{number}"), "1")).collect();
    let seen = ObservedMember { properties: Some(crowd), ..well() };
    let status = registered(&labels, None).status("fleet", &gateway(), &seen, &Value::Null, NOW);
    assert_eq!(status["status"]["properties"].as_array().unwrap().len(), 128);
}

#[test]
fn only_a_registered_cluster_has_one() {
    let labelled = BTreeMap::from([(CREDENTIAL_TYPE_LABEL.to_owned(), "X509Certificate".to_owned())]);
    let none = BTreeMap::new();
    assert!(Registered::read("c1", &labelled, &none).is_some());
    assert_eq!(Registered::read("c1", &none, &none), None, "a Secret of something else");
    assert_eq!(Registered::read("local", &labelled, &none), None);
}

#[test]
fn a_profile_is_ours_by_label_spec_and_place() {
    let ours = registered(&[], None).object("fleet", "vela-system", None);
    assert_eq!(owner(&ours, "vela-system"), Owner::We);
    let bare = with(ours.clone(), "/metadata/annotations", json!({}));
    assert_eq!(owner(&bare, "vela-system"), Owner::We);
    for (pointer, value, told) in [
        ("/spec/clusterManager/name", json!("open-cluster-management"), "open-cluster-management"),
        ("/spec/clusterManager", json!(null), "cluster manager \"\""),
        ("/metadata/labels/x-k8s.io~1cluster-manager", json!("open-cluster-management"), "without the label"),
        ("/metadata/labels", json!({}), "without the label"),
        ("/metadata/annotations/cluster.core.oam.dev~1secret-namespace", json!("other"), "\"other\""),
    ] {
        let Owner::Other(who) = owner(&with(ours.clone(), pointer, value), "vela-system") else {
            panic!("{pointer}: ours");
        };
        assert!(who.contains(told), "{pointer}: {who}");
    }
    let odd = with(ours, "/spec/clusterManager/name", json!(format!("a\n{}", "b".repeat(500))));
    let Owner::Other(who) = owner(&odd, "vela-system") else { panic!("ours") };
    assert!(who.len() < 100 && !who.contains('\n'), "{who}");
}
