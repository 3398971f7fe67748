use serde_json::json;

use super::*;
use crate::samples::{CANARY, base64, secret, with};

#[test]
fn an_objects_metadata_is_read_and_refers_to_it() {
    let object = Object::read(&json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"namespace": "ns", "name": "c1", "uid": "u-1", "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z", "labels": {"team": "a"}, "annotations": null}}))
    .unwrap();
    assert_eq!(object.reference(), "cluster.x-k8s.io/Cluster/ns/c1");
    assert_eq!((object.uid.as_str(), object.created.as_str()), ("u-1", "2026-01-01T00:00:00Z"));
    assert_eq!((object.labels["team"].as_str(), object.annotations.len(), object.is_deleting), ("a", 0, true));
    let bare = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u"}});
    let bare = Object::read(&bare).unwrap();
    assert_eq!((bare.reference().as_str(), bare.is_deleting), ("/Node//n", false));
}

#[test]
fn an_object_that_is_none_is_refused_by_the_field() {
    let object = json!({"apiVersion": "a/v1", "kind": "K", "metadata": {"name": "n", "uid": "u", "labels": {}}});
    for (pointer, value, expected) in [
        ("/metadata/uid", json!(null), "metadata.uid is empty"),
        ("/metadata/name", json!(""), "metadata.name is empty"),
        ("/metadata/name", json!([CANARY]), "metadata.name has an unexpected type"),
        ("/kind", json!(null), "kind is empty"),
        ("/metadata/labels", json!({"a": {"b": CANARY}}), "metadata.labels has an unexpected type"),
        ("/metadata/labels", json!(CANARY), "metadata.labels has an unexpected type"),
        ("/metadata", json!(CANARY), "is empty"),
    ] {
        let refused = Object::read(&with(object.clone(), pointer, value)).unwrap_err().to_string();
        assert!(refused.contains(expected) && !refused.contains(CANARY), "{expected}: {refused}");
    }
}

#[test]
fn a_secrets_data_is_decoded_and_cannot_be_printed() {
    let secret = with(
        secret("s", &[("token", CANARY), ("empty", "")]),
        "/metadata/ownerReferences",
        json!([{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c1", "uid": "u-1"}]),
    );
    let read = SecretObject::read(&with(secret, "/data/null", json!(null))).unwrap();
    assert_eq!(read.value("token"), Some(CANARY.as_bytes()));
    assert_eq!((read.value("empty"), read.value("null"), read.value("other")), (None, None, None));
    assert_eq!((read.owners[0].group.as_str(), read.owners[0].uid.as_str()), ("cluster.x-k8s.io", "u-1"));
    let printed = format!("{read:?}");
    assert!(!printed.contains(CANARY) && !printed.contains(&format!("{:?}", CANARY.as_bytes())), "{printed}");
}

#[test]
fn a_secret_that_is_none_is_refused_by_the_key() {
    let good = secret("s", &[("token", "t")]);
    for (pointer, value, expected) in [
        ("/data/token", json!("c4n4ry~"), "key \"token\" of the Secret is not base64"),
        ("/data/token", json!(format!("{}\n", base64(CANARY))), "key \"token\" of the Secret is not base64"),
        ("/data/token", json!([CANARY]), "key \"token\" of the Secret is not base64"),
        ("/data/c4n4ry c4n4ry", json!(""), "has an invalid key"),
        ("/data", json!(CANARY), "data has an unexpected type"),
        ("/type", json!({"a": CANARY}), "type has an unexpected type"),
        ("/metadata/ownerReferences", json!(CANARY), "metadata.ownerReferences has an unexpected type"),
        ("/metadata/ownerReferences", json!([{"kind": [CANARY]}]), "kind has an unexpected type"),
        ("/metadata/namespace", json!(null), "metadata.namespace is empty"),
    ] {
        let refused = SecretObject::read(&with(good.clone(), pointer, value)).unwrap_err().to_string();
        assert!(refused.contains(expected) && !refused.contains(CANARY), "{expected}: {refused}");
    }
}

#[test]
fn only_a_no_ends_what_was_registered() {
    assert!(Waiting::NotAccepted.ends() && Waiting::Leaving.ends());
    for waiting in [Waiting::NoKubeconfig, Waiting::NoSecret("a"), Waiting::NoToken, Waiting::NoAddress] {
        assert!(!waiting.ends(), "{waiting}");
    }
}
