//! Objects that are kept, thousands of them, each by another writer: each has its share of memory.

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use register::ocm::condition::{self, AVAILABLE, CLOCK_SYNCED, HUB_ACCEPTED, JOINED};
use register::ocm::standing::AUTOMATIC_ANNOTATION;
use register::ocm::{KIND, is_accepted};
use register::reading::TOO_LARGE as MARK;
use serde_json::{Map, Value, json};

use super::weight;

/// Bytes of an object's fields that are kept, as JSON.
pub const LARGEST: usize = 64 << 10;
/// Bytes that they may take in memory. A cluster with 200 claims takes half of it.
const HEAVIEST: usize = 512 << 10;
/// The same of a `ManagedCluster` that is new: anybody with a bootstrap credential may create
/// thousands. As many taints as admission permits fit, if each has no more than 200 bytes;
/// admission permits longer ones.
const LARGEST_NEW: usize = 16 << 10;
const HEAVIEST_NEW: usize = 128 << 10;
/// Bytes of an annotation, of all taints, of all finalizers, and of a condition that stay of an
/// object that is too large.
const SHORT: usize = 16 << 10;
/// Bytes of memory that taints which stay then may take: as many as admission permits, if each has
/// no more than 200 bytes.
const HEAVIEST_TAINTS: usize = 128 << 10;
/// Conditions of a `ManagedCluster` that stay then.
const CONDITIONS: [&str; 4] = [HUB_ACCEPTED, JOINED, AVAILABLE, CLOCK_SYNCED];

/// Why an object is more than is kept of one, if it is. Its managed fields do not count.
pub fn excess(object: &DynamicObject) -> Option<String> {
    let marked = marked(object);
    if marked.is_some() {
        return marked;
    }
    let metadata = (object.labels(), object.annotations(), object.finalizers(), object.owner_references());
    let text = serde_json::to_string(&(metadata, &object.data));
    // Values with texts as keys cannot fail to be written.
    let Ok(text) = text else { return Some("its size cannot be determined".to_owned()) };
    let (largest, heaviest, when) =
        if is_new(object) { (LARGEST_NEW, HEAVIEST_NEW, " before it is accepted") } else { (LARGEST, HEAVIEST, "") };
    let is_large = text.len() > largest;
    let is_heavy = || weight(text.as_bytes()) > heaviest;
    (is_large || is_heavy()).then(|| {
        format!(
            "its labels, annotations, finalizers, owners, spec and status have more than {} KiB, or take more than {} \
             KiB of memory{when}",
            largest >> 10,
            heaviest >> 10
        )
    })
}

/// Whether it is a `ManagedCluster` that was never judged: those who may create one can write no
/// status, and admission guards the annotation.
fn is_new(object: &DynamicObject) -> bool {
    object.types.as_ref().is_some_and(|types| types.kind == KIND)
        && !is_accepted(&object.data)
        && condition::find(&object.data, HUB_ACCEPTED).is_none()
        && !object.annotations().contains_key(AUTOMATIC_ANNOTATION)
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
    // A part of them must not be written back. One that ends keeps ours until the others are gone.
    let finalizers = object.finalizers().iter().map(|one| one.len() + size_of::<String>()).sum::<usize>();
    if finalizers > SHORT {
        object.metadata.finalizers = None;
    }
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
    let text = taints.to_string();
    let is_small = text.len() <= SHORT && weight(text.as_bytes()) <= HEAVIEST_TAINTS;
    (taints.is_array() && is_small).then_some(taints)
}

/// Of several conditions of one type, readers take the first.
fn conditions(data: &Value) -> Vec<Value> {
    let all = data.pointer("/status/conditions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let first = |kind: &&str| all.iter().find(|condition| condition["type"] == **kind);
    CONDITIONS.iter().filter_map(first).filter(|one| one.to_string().len() <= SHORT).cloned().collect()
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
    use kube::core::{ObjectMeta, TypeMeta};

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

    #[test]
    fn tiny_taints_of_an_object_that_is_too_large_are_not_kept() {
        for (taints, is_kept) in [(66, true), (1000, false)] {
            let taint = json!({"key": "k", "effect": "NoSelect"});
            let mut large = cluster(json!({"spec": {"hubAcceptsClient": true, "taints": vec![taint; taints]}}));
            if !is_kept {
                large.data["spec"]["taints"] = json!(vec![json!({"a": 0}); taints]);
            }
            large.data["status"] = json!({"more": "m".repeat(LARGEST)});
            bound(&mut large, &[], &[]);
            assert_eq!(has_taints(&large.data), is_kept, "{taints}");
        }
    }

    #[test]
    fn finalizers_and_owners_count_and_too_many_are_not_kept() {
        let owner = |name: String| OwnerReference { name, ..OwnerReference::default() };
        let accepted = || cluster(json!({"spec": {"hubAcceptsClient": true}}));
        let (mut finalized, mut owned) = (accepted(), accepted());
        finalized.metadata.finalizers = Some((0..10_000).map(|number| format!("a/{number}")).collect());
        owned.metadata.owner_references = Some(vec![owner("o".repeat(LARGEST))]);
        owned.metadata.finalizers = Some(vec!["a/b".to_owned()]);
        for (mut large, kept) in [(finalized, 0), (owned, 1)] {
            assert!(excess(&large).unwrap().contains("finalizers, owners"));
            bound(&mut large, &[], &["hubAcceptsClient"]);
            assert_eq!((large.finalizers().len(), large.owner_references().len()), (kept, 0));
            assert_eq!(large.data["spec"], json!({"hubAcceptsClient": true, "taints": []}));
        }
        let mut usual = accepted();
        usual.metadata.owner_references = Some(vec![owner("o".to_owned())]);
        assert_eq!(excess(&usual), None);
    }

    /// A bootstrap credential can create any number of them.
    #[test]
    fn a_cluster_that_is_new_has_a_smaller_share() {
        let mut new = cluster(Value::Null);
        new.types = Some(TypeMeta { api_version: "v1".to_owned(), kind: KIND.to_owned() });
        let medium =
            |spec: Value, status: Value| json!({"spec": spec, "status": status, "more": "m".repeat(LARGEST / 2)});
        new.data = medium(json!({"hubAcceptsClient": false}), json!({}));
        assert!(excess(&new).unwrap().ends_with("16 KiB, or take more than 128 KiB of memory before it is accepted"));
        let (key, value) = (format!("example.com/{}", "k".repeat(48)), "v".repeat(60));
        let taint = json!({"key": key, "value": value, "effect": "NoSelect", "timeAdded": "2026-01-01T00:00:00Z"});
        assert!((190..=200).contains(&taint.to_string().len()), "{taint}");
        new.data = json!({"spec": {"taints": vec![taint; 66]}});
        assert_eq!(excess(&new), None, "as many taints as there may be");
        new.data = medium(json!({"hubAcceptsClient": true}), json!({}));
        assert_eq!(excess(&new), None, "a person's yes ends that");
        new.data = medium(json!({}), json!({"conditions": [{"type": HUB_ACCEPTED, "status": "False"}]}));
        assert_eq!(excess(&new), None, "it was accepted before");
        new.data = medium(json!({}), json!({}));
        new.annotations_mut().insert(AUTOMATIC_ANNOTATION.to_owned(), "2026-01-01T00:00:00Z".to_owned());
        assert_eq!(excess(&new), None);
    }
}
