use serde_json::{Value, json};

use super::*;
use crate::samples::{CANARY, kubeconfig as sample, read_secret, rules, secret as plain, told, with};

fn cluster() -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1", "labels": {"team": "a",
            "topology.cluster.x-k8s.io/owned": "", "cluster.core.oam.dev/cluster-endpoint-type": "ClusterProxy"}},
        "spec": {"controlPlaneEndpoint": {"host": "10.0.0.7", "port": 6443}},
    })
}

fn owner(api_version: &str, kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": api_version, "kind": kind, "name": name, "uid": uid, "controller": true}])
}

/// As Cluster API's own core manager writes it.
fn secret() -> Value {
    let mut secret = plain("c1-kubeconfig", &[("value", &sample().to_string())]);
    secret["type"] = "cluster.x-k8s.io/secret".into();
    secret["metadata"]["labels"] = json!({"cluster.x-k8s.io/cluster-name": "c1"});
    secret["metadata"]["ownerReferences"] = owner("cluster.x-k8s.io/v1beta2", "Cluster", "c1", "u-1");
    secret
}

fn reading(cluster: &Value, secret: Option<&Value>) -> Reading {
    read(cluster, secret.map(read_secret).as_ref(), &rules())
}

fn tell(cluster: &Value, secret: &Value) -> String {
    told(&reading(cluster, Some(secret)))
}

#[test]
fn a_cluster_with_its_kubeconfig_is_registered_with_its_labels() {
    let Reading::Register(registered) = reading(&cluster(), Some(&secret())) else { panic!("not registered") };
    assert_eq!(registered.labels.keys().collect::<Vec<_>>(), ["team"]);
    assert_eq!(registered.endpoint.kind(), "Const");
    let older = with(cluster(), "/apiVersion", "cluster.x-k8s.io/v1beta1");
    assert_eq!(tell(&older, &secret()), "registered");
    assert_eq!(tell(&cluster(), &with(secret(), "/type", "Opaque")), "registered");
}

#[test]
fn control_planes_own_secrets_too() {
    let owned = |owner: Value| with(secret(), "/metadata/ownerReferences", owner);
    let kubeadm = owned(owner("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "c1-cp", "u-2"));
    // A user that may write Secrets but not read Clusters can name any control plane.
    assert!(tell(&cluster(), &kubeadm).contains("no owner reference"), "the Cluster names none");
    let of = |reference: Value| with(cluster(), "/spec/controlPlaneRef", reference);
    let kubeadm_of = of(json!({"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane",
        "name": "c1-cp"}));
    assert_eq!(tell(&kubeadm_of, &kubeadm), "registered");
    // v1beta1 names the version; some providers have control planes in their own group.
    let managed = of(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "GCPManagedControlPlane",
        "name": "c1", "namespace": "ns"}));
    let google = owned(owner("infrastructure.cluster.x-k8s.io/v1beta1", "GCPManagedControlPlane", "c1", "u-3"));
    assert_eq!(tell(&managed, &google), "registered");
    assert!(tell(&managed, &kubeadm).contains("no owner reference"), "another's control plane");
    assert!(tell(&cluster(), &google).contains("no owner reference"), "a control plane that it does not name");
}

#[test]
fn what_cluster_api_would_not_write_is_refused() {
    let owned = |owner: Value| with(secret(), "/metadata/ownerReferences", owner);
    let labelled = |labels: Value| with(secret(), "/metadata/labels", labels);
    let exec = with(
        sample(),
        "/users/0/user",
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1",
        "command": CANARY}}),
    );
    let valued = |value: &str| with(secret(), "/data/value", crate::samples::base64(value));
    for (secret, expected) in [
        (owned(json!(null)), "no owner reference"),
        (owned(owner("cluster.x-k8s.io/v1beta2", "Cluster", "c1", "u-0")), "no owner reference"),
        (owned(owner("cluster.x-k8s.io/v1beta2", "Cluster", "c2", "u-1")), "no owner reference"),
        (owned(owner("cluster.x-k8s.io/v1beta2", "Machine", "c1", "u-1")), "no owner reference"),
        (owned(owner("example.com/v1", "Cluster", "c1", "u-1")), "no owner reference"),
        (owned(owner("v1", "ConfigMap", "c1", "u-1")), "no owner reference"),
        (labelled(json!(null)), "label cluster.x-k8s.io/cluster-name"),
        (labelled(json!({"cluster.x-k8s.io/cluster-name": "c2"})), "label cluster.x-k8s.io/cluster-name"),
        (with(secret(), "/type", "kubernetes.io/tls"), "is neither cluster.x-k8s.io/secret"),
        (with(secret(), "/metadata/name", "c2-kubeconfig"), "its kind is not the one"),
        (with(secret(), "/metadata/namespace", "other"), "its kind is not the one"),
        (with(secret(), "/data", json!({"kubeconfig": "e30="})), "no key \"value\""),
        (with(secret(), "/data/value", ""), "no key \"value\""),
        (valued(CANARY), "near line"),
        (valued(&exec.to_string()), "--exec-commands"),
        (valued(&with(sample(), "/clusters/0/cluster/server", "https://[fe80::1]").to_string()), "--deny-endpoints"),
    ] {
        let told = tell(&cluster(), &secret);
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn a_cluster_of_an_unknown_shape_is_refused() {
    for (pointer, value, expected) in [
        ("/apiVersion", json!("cluster.x-k8s.io/v1alpha4"), "(v1beta2, v1beta1)"),
        ("/apiVersion", json!("example.com/v1beta1"), "its kind is not the one"),
        ("/kind", json!("Machine"), "its kind is not the one"),
        ("/metadata/uid", json!(null), "metadata.uid is empty"),
        ("/spec/paused", json!("c4n4ry"), "spec.paused has an unexpected type"),
        ("/spec/controlPlaneRef", json!({"kind": {"c4n4ry": 1}}), "spec.controlPlaneRef.kind has an unexpected type"),
    ] {
        let told = tell(&with(cluster(), pointer, value), &secret());
        assert!(told.starts_with("refused: ") && told.contains(expected) && !told.contains(CANARY), "{told}");
    }
}

#[test]
fn a_paused_cluster_is_left_alone() {
    let annotated = with(cluster(), "/metadata/annotations", json!({"cluster.x-k8s.io/paused": ""}));
    let deleted = with(annotated.clone(), "/metadata/deletionTimestamp", "2026-01-01T00:00:00Z");
    for paused in [with(cluster(), "/spec/paused", true), annotated, deleted] {
        assert_eq!(tell(&paused, &secret()), "paused");
        assert_eq!(told(&reading(&paused, None)), "paused");
    }
    assert_eq!(tell(&with(cluster(), "/spec/paused", false), &secret()), "registered");
}

#[test]
fn a_cluster_stays_until_its_kubeconfig_is_gone() {
    let deleted = with(cluster(), "/metadata/deletionTimestamp", "2026-01-01T00:00:00Z");
    assert_eq!(tell(&deleted, &secret()), "registered");
    let (Reading::Waiting(gone), Reading::Waiting(not_yet)) = (reading(&deleted, None), reading(&cluster(), None))
    else {
        panic!("no Secret, but a cluster")
    };
    assert!(gone.ends() && !not_yet.ends());
}

#[test]
fn of_a_clusters_secrets_one_is_its_kubeconfig() {
    assert_eq!(cluster_of("c1-kubeconfig", "c1"), Some("c1"));
    for secret in ["c1-ca", "c1-etcd", "c1-sa", "c1-proxy", "c1-user-kubeconfig", "kubeconfig", "c2-kubeconfig"] {
        assert_eq!(cluster_of(secret, "c1"), None, "{secret}");
    }
    assert_eq!(kubeconfig_secret("ns", "c1").name, "c1-kubeconfig");
}
