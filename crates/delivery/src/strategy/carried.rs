//! Fields that a member fills in once and makes immutable, or that another controller sets: a PUT
//! must carry them if the manifest leaves them out. Upstream does so in merges of known types.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

use crate::fields::{child, group_and_version, list, text};

/// Group, kind, and the path of a field that is carried over if the manifest has none.
const FIELDS: [(&str, &str, &[&str]); 16] = [
    ("", "Service", &["spec", "clusterIP"]),
    ("", "Service", &["spec", "clusterIPs"]),
    ("", "Service", &["spec", "ipFamilies"]),
    ("", "Service", &["spec", "ipFamilyPolicy"]),
    ("", "Service", &["spec", "healthCheckNodePort"]),
    ("", "PersistentVolumeClaim", &["spec", "volumeName"]),
    ("", "PersistentVolumeClaim", &["spec", "storageClassName"]),
    ("", "PersistentVolumeClaim", &["spec", "volumeMode"]),
    ("", "PersistentVolume", &["spec", "claimRef"]),
    ("batch", "Job", &["spec", "selector"]),
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &["spec", "conversion", "webhook", "clientConfig", "caBundle"],
    ),
    ("apiregistration.k8s.io", "APIService", &["spec", "caBundle"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels", "controller-uid"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels", "batch.kubernetes.io/controller-uid"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name"]),
    ("batch", "Job", &["spec", "template", "metadata", "labels", "job-name"]),
];

/// The type of Secrets that hold tokens.
const TOKEN: &str = "kubernetes.io/service-account-token";

/// Carries over what `object` leaves out and `observed` has, and the status: an object without a
/// status subresource would lose it.
pub fn carry(object: &mut Json, observed: &Json) {
    let group = group_and_version(text(object, "/apiVersion")).0.to_owned();
    let kind = text(object, "/kind").to_owned();
    for (_, _, path) in FIELDS.iter().filter(|(of, what, _)| (*of, *what) == (&group, &kind)) {
        take_over(object, observed, path);
    }
    if group.is_empty() && kind == "Secret" && text(object, "/type") == TOKEN {
        carry_token(object, observed);
    }
    if group == "admissionregistration.k8s.io" {
        carry_bundles(object, observed);
    }
    if let (Some(entries), Some(status)) = (object.as_object_mut(), observed.get("status")) {
        entries.insert("status".to_owned(), status.clone());
    }
}

fn take_over(object: &mut Json, observed: &Json, path: &[&str]) {
    let found = path.iter().try_fold(observed, |value, key| value.get(key));
    let (Some(found), Some((last, parents))) = (found.filter(|found| !found.is_null()), path.split_last()) else {
        return;
    };
    // A webhook that the manifest drops stays dropped: only parents without a meaning of their own
    // are created.
    let mut parent: Option<&mut Map<String, Json>> = object.as_object_mut();
    for key in parents {
        parent = parent.and_then(|parent| match parent.get(*key) {
            Some(Json::Object(_)) => child(parent, key),
            None if matches!(*key, "spec" | "metadata" | "labels") => child(parent, key),
            _ => None,
        });
    }
    if let Some(parent) = parent
        && parent.get(*last).is_none_or(Json::is_null)
    {
        parent.insert((*last).to_owned(), found.clone());
    }
}

/// CA bundles of webhooks, which others set.
fn carry_bundles(object: &mut Json, observed: &Json) {
    let Some(Json::Array(webhooks)) = object.get_mut("webhooks") else { return };
    let known: HashMap<&str, &Json> = list(observed, "/webhooks").iter().map(|one| (text(one, "/name"), one)).collect();
    for webhook in webhooks {
        if let Some(known) = known.get(text(webhook, "/name")) {
            take_over(webhook, known, &["clientConfig", "caBundle"]);
        }
    }
}

/// Data that the member puts into a token of a `ServiceAccount`.
fn carry_token(object: &mut Json, observed: &Json) {
    let Some(Json::Object(known)) = observed.get("data") else { return };
    let Some(data) = object.as_object_mut().and_then(|entries| child(entries, "data")) else { return };
    for (key, value) in known {
        data.entry(key.as_str()).or_insert_with(|| value.clone());
    }
}

/// Whether only the metadata of this kind is brought to the wanted state, as upstream does: the
/// rest is the member's, or cannot change.
pub fn is_by_metadata(object: &Json) -> bool {
    text(object, "/apiVersion") == "v1" && matches!(text(object, "/kind"), "Pod" | "Namespace" | "ServiceAccount")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn carried(mut object: Json, observed: &Json) -> Json {
        carry(&mut object, observed);
        object
    }

    #[test]
    fn what_is_left_open_is_taken_over() {
        let service = json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": []}});
        let observed = json!({"spec": {"clusterIP": "10.0.0.1", "ports": [1]}, "status": {"loadBalancer": {}}});
        let found = carried(service.clone(), &observed);
        assert_eq!(found["spec"], json!({"ports": [], "clusterIP": "10.0.0.1"}));
        assert_eq!(found["status"], observed["status"]);
        let mut chosen = service;
        chosen["spec"]["clusterIP"] = json!("None");
        assert_eq!(carried(chosen, &observed)["spec"]["clusterIP"], "None");
        let other = json!({"apiVersion": "x.io/v1", "kind": "Service", "spec": {}});
        assert_eq!(carried(other, &observed)["spec"], json!({}));
    }

    #[test]
    fn a_job_keeps_its_selector_and_labels() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"metadata": {"labels": {"a": "b"}}}}});
        let made = json!({"batch.kubernetes.io/controller-uid": "1", "batch.kubernetes.io/job-name": "j",
            "controller-uid": "1", "job-name": "j"});
        let mut all = made.clone();
        (all["a"], all["other"]) = ("b".into(), "c".into());
        let observed =
            json!({"spec": {"selector": {"matchLabels": {"u": "1"}}, "template": {"metadata": {"labels": all}}}});
        let found = carried(job, &observed);
        assert_eq!(found["spec"]["selector"], observed["spec"]["selector"]);
        let mut wanted = made;
        wanted["a"] = "b".into();
        assert_eq!(found["spec"]["template"]["metadata"]["labels"], wanted);
    }

    #[test]
    fn what_has_no_parent_gets_one_unless_that_would_mean_something() {
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {"spec": {}}}});
        let labels = json!({"controller-uid": "1"});
        let observed = json!({"spec": {"template": {"metadata": {"labels": labels}}}});
        assert_eq!(carried(job, &observed)["spec"]["template"]["metadata"]["labels"], labels);
        let plain = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": {}});
        let webhook = json!({"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": "x"}}});
        assert_eq!(carried(plain.clone(), &json!({"spec": {"conversion": webhook}})), plain);
    }

    #[test]
    fn a_token_keeps_what_was_put_into_it() {
        let token = json!({"apiVersion": "v1", "kind": "Secret", "type": TOKEN, "data": {"own": "1"}});
        let observed = json!({"data": {"token": "x", "ca.crt": "y", "own": "2"}});
        let found = carried(token.clone(), &observed);
        assert_eq!(found["data"], json!({"token": "x", "ca.crt": "y", "own": "1"}));
        let mut opaque = token;
        opaque["type"] = json!("Opaque");
        assert_eq!(carried(opaque, &observed)["data"], json!({"own": "1"}));
    }

    #[test]
    fn webhooks_keep_their_certificates_by_name() {
        let hook = |name: &str, bundle: Option<&str>| json!({"name": name, "clientConfig": {"caBundle": bundle}});
        let wanted = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "webhooks": [hook("b", None), hook("a", Some("own")), hook("new", None)]});
        let observed = json!({"webhooks": [hook("a", Some("x")), hook("b", Some("y"))]});
        let found = carried(wanted, &observed);
        assert_eq!(found["webhooks"], json!([hook("b", Some("y")), hook("a", Some("own")), hook("new", None)]));
    }
}
