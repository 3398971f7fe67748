//! The owner of an object that a join created: one hub, and one account.
//!
//! A label names the program that created the object. That does not suffice to change or delete it:
//! two hubs may join a member under the same name, and each would take the other's account for its
//! own.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde_json::{Value, json};

use crate::account::{Account, MANAGED_BY};

/// `UID OF THE HUB/NAME OF THE ACCOUNT`: annotation of everything that is created for the account,
/// except the Namespace.
pub const ANNOTATION: &str = "cluster.core.oam.dev/joined-by";

/// The value of that annotation. A hub is identified by the uid of its Namespace `kube-system`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim(String);

// === impl Claim ===

impl Claim {
    pub fn new(hub: &str, account: &Account) -> Self {
        Self(format!("{hub}/{}", account.name))
    }

    /// Whether this program created the object, for this hub and this account.
    pub fn is_on<K: ResourceExt>(&self, object: &K) -> bool {
        is_ours(object) && self.is_named_by(object)
    }

    /// The same for objects with labels of their own, such as a chart's: only the annotation
    /// counts.
    pub fn is_named_by<K: ResourceExt>(&self, object: &K) -> bool {
        self.is_among(object.annotations())
    }

    /// Whether `annotations` contain the claim.
    pub fn is_among(&self, annotations: &BTreeMap<String, String>) -> bool {
        annotations.get(ANNOTATION) == Some(&self.0)
    }

    /// Adds the annotation to an object's document.
    pub fn put_on(&self, document: &mut Value) {
        let annotations = &mut document["metadata"]["annotations"];
        if !annotations.is_object() {
            *annotations = json!({});
        }
        annotations[ANNOTATION] = json!(self.0);
    }

    /// Why the object does not belong to this account. `None`: it does.
    pub fn refusal<K: ResourceExt>(&self, object: &K) -> Option<&'static str> {
        match object.annotations().get(ANNOTATION) {
            _ if self.is_on(object) => None,
            Some(_) if is_ours(object) => Some("was created for another hub, or for another cluster of this hub"),
            _ => Some("was not created by this program"),
        }
    }
}

/// Whether this program created the object.
pub fn is_ours<K: ResourceExt>(object: &K) -> bool {
    object.labels().get(MANAGED_BY.0).map(String::as_str) == Some(MANAGED_BY.1)
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ServiceAccount;

    use super::*;

    fn account(name: &str) -> Account {
        Account { namespace: "ns".into(), name: name.into() }
    }

    fn object(labels: &Value, annotations: &Value) -> ServiceAccount {
        serde_json::from_value(json!({"metadata": {"name": "x", "labels": labels, "annotations": annotations}}))
            .unwrap()
    }

    #[test]
    fn an_object_is_of_one_hub_and_one_account() {
        let own = Claim::new("hub", &account("berlin"));
        let mut document = json!({"metadata": {"labels": {MANAGED_BY.0: MANAGED_BY.1}}});
        own.put_on(&mut document);
        let made: ServiceAccount = serde_json::from_value(document).unwrap();
        assert!(own.is_on(&made) && own.refusal(&made).is_none());
        for other in [Claim::new("hub-2", &account("berlin")), Claim::new("hub", &account("oslo"))] {
            assert!(!other.is_on(&made));
            assert!(other.refusal(&made).unwrap().contains("another hub"));
        }
        let labelled = object(&json!({MANAGED_BY.0: MANAGED_BY.1}), &json!({}));
        let annotated = object(&json!({}), &json!({ANNOTATION: "hub/berlin"}));
        for foreign in [labelled, annotated] {
            assert!(own.refusal(&foreign).unwrap().contains("not created by this program"));
        }
    }
}
