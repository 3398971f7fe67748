//! The rights that a work's executor needs before an object is written for it.
//!
//! Nothing is requested here: a [`Review`] is the content of a `SubjectAccessReview` on the member.

mod escalation;

use serde_json::{Value as Json, json};

use crate::identity::Identity;
use crate::strategy::Strategy;

pub use self::escalation::{Escalation, ITEMS, Refused, Role, escalation, rules_of};

/// The `ServiceAccount` of the member on whose behalf objects are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub namespace: String,
    pub name: String,
}

/// One right that is needed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Review {
    Resource {
        verb: String,
        group: String,
        version: String,
        resource: String,
        subresource: String,
        namespace: String,
        name: String,
    },
    Url {
        verb: String,
        path: String,
    },
}

/// The version of RBAC objects.
const VERSION: &str = "v1";

// === impl Executor ===

impl Executor {
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    pub fn groups(&self) -> [String; 3] {
        let namespace = format!("system:serviceaccounts:{}", self.namespace);
        ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned(), namespace]
    }

    /// The `SubjectAccessReview` to create on the member.
    pub fn review(&self, review: &Review) -> Json {
        let mut spec = json!({"user": self.user(), "groups": self.groups()});
        let (field, attributes) = review.attributes();
        if let Some(entries) = spec.as_object_mut() {
            entries.insert(field.to_owned(), attributes);
        }
        json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
    }
}

// === impl Review ===

impl Review {
    fn of(verb: &str, identity: &Identity, version: &str) -> Self {
        Self::Resource {
            verb: verb.to_owned(),
            group: identity.group.clone(),
            version: version.to_owned(),
            resource: identity.resource.clone(),
            subresource: String::new(),
            namespace: identity.namespace.clone(),
            name: identity.name.clone(),
        }
    }

    fn attributes(&self) -> (&'static str, Json) {
        match self {
            Self::Resource { verb, group, version, resource, subresource, namespace, name } => (
                "resourceAttributes",
                json!({"verb": verb, "group": group, "version": version, "resource": resource,
                    "subresource": subresource, "namespace": namespace, "name": name}),
            ),
            Self::Url { verb, path } => ("nonResourceAttributes", json!({"verb": verb, "path": path})),
        }
    }
}

/// The rights needed to apply an object with its strategy and, if it is owned, to delete it one
/// day.
pub fn reviews(identity: &Identity, version: &str, is_owned: bool, strategy: &Strategy) -> Vec<Review> {
    let verbs: &[&str] = match strategy {
        Strategy::ReadOnly => &["get"],
        _ => &["create", "update", "patch", "get"],
    };
    let verbs = verbs.iter().copied().chain(is_owned.then_some("delete"));
    verbs.map(|verb| Review::of(verb, identity, version)).collect()
}

/// The right needed to delete an object.
pub fn removal(identity: &Identity, version: &str) -> Review {
    Review::of("delete", identity, version)
}

/// Upstream's text for a missing right.
pub fn refusal(identity: &Identity) -> String {
    let Identity { group, resource, namespace, name } = identity;
    format!("not allowed to apply the resource {group} {resource}, {namespace} {name}")
}

/// Upstream's text for a write that would grant more than the executor has.
pub fn escalated(identity: &Identity) -> String {
    format!("{}, error: permission escalation", refusal(identity))
}

#[cfg(test)]
mod tests;
