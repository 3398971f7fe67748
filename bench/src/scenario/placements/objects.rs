//! Clusters, sets and Placements on the hub.

use serde_json::{Value, json};

use super::{EDITED, FEW, GROUP, MANY, SEEING, SEEN, Size};

/// Namespaces, sets and bindings.
pub(super) fn ground() -> Vec<Value> {
    let set = |name: &str| {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": name},
            "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}})
    };
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let binding = |(namespace, set): (&str, &str)| {
        json!({"apiVersion": format!("{GROUP}/v1beta2"), "kind": "ManagedClusterSetBinding",
            "metadata": {"name": set, "namespace": namespace}, "spec": {"clusterSet": set}})
    };
    let mut objects: Vec<Value> = [FEW, MANY, EDITED].map(namespace).into();
    objects.extend([FEW, MANY].map(set));
    objects.extend([(FEW, FEW), (MANY, MANY), (EDITED, MANY)].map(binding));
    objects
}

/// The first are the few.
pub(super) fn cluster(number: usize, size: Size) -> (String, Value) {
    let (name, set, half) = match number.checked_sub(SEEN) {
        None => (format!("few-{number:05}"), FEW, ""),
        Some(at) if at < size.chosen => (format!("a-{at:05}"), MANY, "a"),
        Some(at) => (format!("b-{:05}", at - size.chosen), MANY, "b"),
    };
    let state = if number.is_multiple_of(2) { "on" } else { "off" };
    let labels = json!({format!("{GROUP}/clusterset"): set, "half": half, "state": state});
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ManagedCluster",
        "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}});
    (format!("/apis/{GROUP}/v1/managedclusters"), object)
}

/// The first are the seeing, then comes the one that is edited.
pub(super) fn placement(number: usize) -> (String, Value) {
    let (namespace, name, spec) = match number {
        ..SEEING => (FEW, format!("few-{number}"), choosing("state", "on")),
        SEEING => (EDITED, EDITED.to_owned(), choosing("half", "a")),
        _ => (MANY, format!("many-{number}"), json!({"numberOfClusters": 1})),
    };
    let object = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement",
        "metadata": {"name": name, "namespace": namespace}, "spec": spec});
    (format!("/apis/{GROUP}/v1beta1/namespaces/{namespace}/placements"), object)
}

/// A selector of all clusters with this label.
pub(super) fn choosing(label: &str, value: &str) -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert(label.to_owned(), value.into());
    json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": labels}}}]})
}
