//! Objects that are kept, thousands of them, each by another writer: each has its share of memory.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use register::ocm::condition::{AVAILABLE, CLOCK_SYNCED, HUB_ACCEPTED, JOINED};
use register::reading::TOO_LARGE as MARK;
use serde_json::{Map, Value, json};

use super::weight;

/// Bytes of an object's fields that are kept, as JSON.
pub const LARGEST: usize = 64 << 10;
/// Bytes that they may take in memory. A cluster with 200 claims takes half of it.
const HEAVIEST: usize = 512 << 10;
/// Bytes of an annotation, of all taints, and of a condition that stay of an object that is too
/// large.
const SHORT: usize = 16 << 10;
/// Conditions of a `ManagedCluster` that stay then.
const CONDITIONS: [&str; 4] = [HUB_ACCEPTED, JOINED, AVAILABLE, CLOCK_SYNCED];

/// Why an object is more than is kept of one, if it is. Its managed fields do not count.
pub fn excess(object: &DynamicObject) -> Option<String> {
    let marked = marked(object);
    if marked.is_some() {
        return marked;
    }
    let text = serde_json::to_string(&(object.labels(), object.annotations(), &object.data));
    // Values with texts as keys cannot fail to be written.
    let Ok(text) = text else { return Some("its size cannot be determined".to_owned()) };
    let is_large = text.len() > LARGEST;
    let is_heavy = || weight(text.as_bytes()) > HEAVIEST;
    (is_large || is_heavy()).then(|| {
        format!(
            "its labels, annotations, spec and status have more than {} KiB, or take more than {} KiB of memory",
            LARGEST >> 10,
            HEAVIEST >> 10
        )
    })
}

/// What is known of that already.
pub fn marked(object: &DynamicObject) -> Option<String> {
    object.data.get(MARK)?.as_str().map(str::to_owned)
}

/// The same of an object as JSON.
pub fn is_marked(object: &Value) -> bool {
    object.get(MARK).is_some()
}

pub fn mark(data: &mut Value, why: Option<String>) {
    if let (Some(fields), Some(why)) = (data.as_object_mut(), why) {
        fields.insert(MARK.to_owned(), why.into());
    }
}

/// Reduces an object that is too large to these labels, these plain fields of its spec, its short
/// annotations, and why. What is judged stays too, unless its metadata was cut: the conditions that
/// controllers of clusters write, and its taints. An agent must not escape that by what it writes.
pub fn bound(object: &mut DynamicObject, labels: &[&str], spec: &[&str]) {
    let was_marked = marked(object).is_some();
    let Some(why) = excess(object) else { return };
    let judged = (!was_marked).then(|| (taints(&object.data), conditions(&object.data)));
    let plain = |field: &&str| {
        let value = object.data.get("spec")?.get(*field)?;
        (value.is_boolean() || value.is_number()).then(|| ((*field).to_owned(), value.clone()))
    };
    let spec: Map<String, Value> = spec.iter().filter_map(plain).collect();
    object.data = json!({"spec": spec});
    if let Some((taints, conditions)) = judged {
        object.data["status"] = json!({"conditions": conditions});
        if let Some(taints) = taints {
            object.data["spec"]["taints"] = taints;
        }
    }
    mark(&mut object.data, Some(why));
    object.labels_mut().retain(|key, _| labels.contains(&key.as_str()));
    object.annotations_mut().retain(|_, value| !was_marked && value.len() <= SHORT);
    object.metadata.owner_references = None;
}

/// Whether what is judged of an object is there: its conditions.
pub fn is_judged(object: &DynamicObject) -> bool {
    marked(object).is_none() || object.data.get("status").is_some()
}

/// Whether the taints of an object, as JSON, are known: they are written as a list.
pub fn has_taints(object: &Value) -> bool {
    !is_marked(object) || object.pointer("/spec/taints").is_some()
}

/// None: they are too large.
fn taints(data: &Value) -> Option<Value> {
    let taints = data.pointer("/spec/taints").cloned().unwrap_or_else(|| json!([]));
    (taints.is_array() && taints.to_string().len() <= SHORT).then_some(taints)
}

/// Of several conditions of one type, readers take the first.
fn conditions(data: &Value) -> Vec<Value> {
    let all = data.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let first = |kind: &&str| all.iter().find(|condition| condition["type"] == **kind);
    CONDITIONS.iter().filter_map(first).filter(|one| one.to_string().len() <= SHORT).cloned().collect()
}

#[cfg(test)]
mod tests {
    use kube::core::ObjectMeta;

    use super::*;

    fn cluster(data: Value) -> DynamicObject {
        let mut cluster = DynamicObject { types: None, metadata: ObjectMeta::default(), data: Value::Null };
        cluster.data = data;
        cluster
    }

    #[test]
    fn what_anybody_would_write_is_kept() {
        let claims: Vec<_> = (0..200)
            .map(|number| json!({"name": format!("claim{number}.example.com"), "value": "x".repeat(60)}))
            .collect();
        let conditions: Vec<_> =
            (0..10).map(|_| json!({"type": "T", "status": "True", "message": "m".repeat(200)})).collect();
        let mut usual = cluster(
            json!({"spec": {"hubAcceptsClient": true}, "status": {"clusterClaims": claims, "conditions": conditions}}),
        );
        usual.labels_mut().extend((0..50).map(|number| (format!("label{number}"), "value".to_owned())));
        assert_eq!(excess(&usual), None);
        let before = usual.clone();
        bound(&mut usual, &[], &[]);
        assert_eq!(usual, before);
    }

    #[test]
    fn of_what_is_too_large_or_too_heavy_only_what_is_named_is_kept() {
        let tiny: Vec<_> = (0..1000).map(|_| json!({"a": 0})).collect();
        for conditions in [json!(tiny), json!([{"message": "m".repeat(LARGEST)}])] {
            let mut large = cluster(
                json!({"spec": {"hubAcceptsClient": true, "taints": [{"key": "k"}]}, "status": {"conditions": conditions}}),
            );
            large
                .labels_mut()
                .extend([("set", "s"), ("other", "o")].map(|(key, value)| (key.to_owned(), value.to_owned())));
            bound(&mut large, &["set"], &["hubAcceptsClient"]);
            assert_eq!(large.data["spec"], json!({"hubAcceptsClient": true, "taints": [{"key": "k"}]}));
            assert_eq!((&large.data["status"], large.labels().len()), (&json!({"conditions": []}), 1));
            assert!(excess(&large).unwrap().contains("64 KiB"), "it says so ever after");
        }
    }
}
