//! Any Cluster of Cluster API with any Secret: a cluster whose Secret belongs to it, or a refusal
//! that repeats no value.
//!
//! Input: changes of a good pair (`sources::changed`).

use register::cluster_api::{CLUSTER_LABEL, cluster_of, read};
use register::reading::{Owner, Reading};
use serde_json::{Value, json};

use crate::sources::{changed, hold, rules};

const CONTROL_PLANES: &str = "controlplane.cluster.x-k8s.io";

pub const WORDS: &[&str] = &[
    "\n/object/",
    "\n/secret/",
    "apiVersion ",
    "cluster.x-k8s.io/v1beta1",
    "kind ",
    "metadata/name ",
    "metadata/namespace ",
    "metadata/uid ",
    "metadata/labels/",
    "cluster.x-k8s.io~1cluster-name",
    "cluster.core.oam.dev~1a",
    "metadata/annotations/cluster.x-k8s.io~1paused ",
    "metadata/deletionTimestamp 2026-01-01T00:00:00Z",
    "metadata/ownerReferences/0/",
    "spec/paused true",
    "spec/controlPlaneRef/",
    "apiGroup controlplane.cluster.x-k8s.io",
    "type Opaque",
    "stringData/value ",
    "data/value ",
    "~secret~",
    "c2",
    "null",
    "{}",
    "[]",
];

fn good() -> Value {
    let kubeconfig = json!({
        "clusters": [{"name": "a", "cluster": {"server": "https://m:6443"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "users": [{"name": "a", "user": {"token": "t"}}]});
    json!({
        "object": {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "spec": {},
            "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1"}},
        "secret": {"type": "cluster.x-k8s.io/secret", "stringData": {"value": kubeconfig.to_string()},
            "metadata": {"namespace": "ns", "name": "c1-kubeconfig", "labels": {CLUSTER_LABEL: "c1"},
                "ownerReferences": [
                    {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "c1", "uid": "u-1"}]}}})
}

pub fn check(input: &[u8]) {
    let Some(pair) = changed(good(), input) else { return };
    hold(&read(&pair.object, None, &rules()));
    let reading = read(&pair.object, pair.secret.as_ref(), &rules());
    hold(&reading);
    let (Reading::Register(_), Some(secret)) = (reading, pair.secret) else { return };
    let name = pair.object["metadata"]["name"].as_str().expect("a name");
    assert_eq!(cluster_of(&secret.name, &secret.labels[CLUSTER_LABEL]), Some(name));
    assert_eq!(pair.object["metadata"]["namespace"], secret.namespace);
    let (uid, control_plane) = (&pair.object["metadata"]["uid"], &pair.object["spec"]["controlPlaneRef"]["name"]);
    let owns = |owner: &Owner| *uid == owner.uid || *control_plane == owner.name || owner.group == CONTROL_PLANES;
    assert!(secret.owners.iter().any(owns), "a Secret that nobody of the Cluster's owns");
}
