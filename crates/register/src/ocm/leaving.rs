//! What is deleted before a `ManagedCluster`: its add-ons, then its works.

use serde_json::Value;

/// Upstream's annotation: objects with a smaller number are deleted first.
pub const PRIORITY_ANNOTATION: &str = "open-cluster-management.io/cleanup-priority";
/// Kinds in the cluster's namespace, in order of deletion: group, versions, plural.
pub const DEPENDENTS: [(&str, &str, &str); 2] = [
    ("addon.open-cluster-management.io", "v1alpha1", "managedclusteraddons"),
    ("work.open-cluster-management.io", "v1", "manifestworks"),
];
/// The hub's finalizer on a `ManagedCluster`, and that of upstream's other controller, whose duty
/// this program also does.
pub const FINALIZERS: [&str; 2] = [FINALIZER, "cluster.open-cluster-management.io/resource-cleanup"];
pub const FINALIZER: &str = "cluster.open-cluster-management.io/api-resource-cleanup";
const LAST: i64 = 100;

/// Names of the `objects` of one kind to delete now: those with the smallest priority. A value that
/// is not a number from 0 to 100 counts as 0, as upstream.
pub fn first(objects: &[Value]) -> Vec<&str> {
    let priority = |object: &Value| {
        let text = object["metadata"]["annotations"].get(PRIORITY_ANNOTATION).and_then(Value::as_str);
        text.and_then(|text| text.parse().ok()).filter(|number| (0..=LAST).contains(number)).unwrap_or(0)
    };
    let smallest = objects.iter().map(priority).min();
    let now = objects.iter().filter(|object| Some(priority(object)) == smallest);
    now.filter_map(|object| object["metadata"]["name"].as_str()).collect()
}

/// The finalizers other than the hub's.
pub fn others(finalizers: &[Value]) -> Vec<Value> {
    let is_ours = |finalizer: &Value| FINALIZERS.iter().any(|ours| finalizer == ours);
    finalizers.iter().filter(|finalizer| !is_ours(finalizer)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_smallest_priority_goes_first() {
        let object = |name: &str, priority: &str| json!({"metadata": {"name": name, "annotations": {PRIORITY_ANNOTATION: priority}}});
        let all = [object("a", "100"), object("b", "5"), object("c", "5"), object("d", "50")];
        assert_eq!(first(&all), ["b", "c"]);
        assert_eq!(first(&[object("a", "1"), object("b", "101"), object("c", "x")]), ["b", "c"]);
        assert!(first(&[]).is_empty());
        assert_eq!(others(&[json!(FINALIZER), json!("x")]), [json!("x")]);
    }
}
