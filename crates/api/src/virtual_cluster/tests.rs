//! Which objects become a `VirtualCluster`, and their output.

use serde_json::json;

use super::*;
use crate::accept::{MetaVersion, Representation};
use crate::samples::{certificate_cluster, token_cluster};
use crate::served::{Form, ListMeta};
use crate::table::IncludeObject;

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn of_secret(labels: &[(&str, &str)], endpoint: &str) -> Result<VirtualCluster, InvalidVirtualCluster> {
    let (labels, annotations) = (texts(labels), texts(&[(ALIAS_ANNOTATION, "Cluster One")]));
    let data = BTreeMap::from([(ENDPOINT_KEY.to_owned(), endpoint.as_bytes().to_vec())]);
    VirtualCluster::of_secret(&SecretView {
        name: "c1",
        uid: "u",
        resource_version: "5",
        creation_timestamp: Some("2026-11-21T10:00:00Z"),
        labels: &labels,
        annotations: &annotations,
        data: &data,
    })
}

fn managed(name: &str, created: &str) -> ManagedCluster {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": "m", "resourceVersion": "7", "creationTimestamp": created,
            "labels": {"region": "north", "cluster.core.oam.dev/hidden": "x"}},
        "spec": {"hubAcceptsClient": true, "managedClusterClientConfigs": [{"url": "https://m"}]},
    }))
    .expect("a ManagedCluster")
}

#[test]
fn endpoints_are_their_types_or_else_themselves() {
    let kind = (CREDENTIAL_TYPE_LABEL, "ServiceAccountToken");
    let endpoint = |labels: &[(&str, &str)], endpoint| of_secret(labels, endpoint).map(|cluster| cluster.spec.endpoint);
    assert_eq!(endpoint(&[kind], "https://m:6443\n"), Ok("https://m:6443".to_owned()));
    assert_eq!(endpoint(&[kind, (ENDPOINT_TYPE_LABEL, "Const")], "https://m"), Ok("Const".to_owned()));
    assert_eq!(endpoint(&[kind, (ENDPOINT_TYPE_LABEL, "ClusterProxy")], ""), Ok("ClusterProxy".to_owned()));
    assert_eq!(endpoint(&[kind], ""), Err(InvalidVirtualCluster::NoEndpoint));
    assert_eq!(endpoint(&[], "https://m"), Err(InvalidVirtualCluster::NoCredentialType));
    let bare = ManagedCluster::default();
    assert_eq!(VirtualCluster::of_managed(&bare), Err(InvalidVirtualCluster::NoClientConfig));
}

#[test]
fn endpoints_that_may_hold_a_password_are_not_shown() {
    let kind = (CREDENTIAL_TYPE_LABEL, "ServiceAccountToken");
    for written in [
        "https://admin:CANARY@m:6443",
        "https://CANARY@m",
        "https://admin:CAN/ARY@m:6443",
        "https://m:6443?token=CANARY",
        "https://m:6443#CANARY",
        "admin:CANARY@m",
        "CANARY",
    ] {
        let cluster = of_secret(&[kind], written).expect("a cluster all the same");
        assert_eq!(cluster.spec.endpoint, NO_ENDPOINT, "{written}");
    }
    for written in ["http://m", "https://m:6443/k8s/clusters/c1/", "https://[::1]:6443"] {
        assert_eq!(of_secret(&[kind], written).expect("a cluster").spec.endpoint, written);
    }
}

#[test]
fn a_secret_read_before_is_the_same_cluster() {
    let spec = certificate_cluster("c2");
    assert_eq!(VirtualCluster::of_spec(&spec).spec.endpoint, "https://[::1]:6443");
    assert_eq!(VirtualCluster::of_spec(&token_cluster("c1")).spec.credential_type, "ServiceAccountToken");
}

#[test]
fn the_control_plane_comes_first_and_then_the_newest() {
    let of = |name, created| VirtualCluster::of_managed(&managed(name, created)).expect("a cluster");
    let mut clusters = [
        of("old", "2026-01-01T00:00:00Z"),
        VirtualCluster::local(),
        of("b", "2026-03-01T00:00:00Z"),
        of("a", "2026-03-01T00:00:00Z"),
    ];
    clusters.sort_by(VirtualCluster::order);
    assert_eq!(clusters.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["local", "a", "b", "old"]);
}

#[test]
fn every_source_in_every_form() {
    let secret =
        of_secret(&[(CREDENTIAL_TYPE_LABEL, "X509Certificate"), ("tier", "gold"), ("area", "one")], "https://m:6443");
    let all = [
        VirtualCluster::local(),
        secret.expect("a cluster"),
        VirtualCluster::of_managed(&managed("c2", "2026-03-01T00:00:00Z")).expect("a cluster"),
    ];
    let forms =
        [Representation::Json, Representation::Table(MetaVersion::V1), Representation::Metadata(MetaVersion::V1)];
    let texts = forms.map(|representation| {
        let form = Form { representation, include: IncludeObject::None };
        let json = form.list(&all, ListMeta { resource_version: "9", ..ListMeta::default() });
        String::from_utf8(json.to_vec()).expect("UTF-8")
    });
    insta::assert_snapshot!(texts.concat());
}
