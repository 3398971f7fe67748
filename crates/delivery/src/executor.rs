//! What a work's executor has to be allowed before an object is written for it.
//!
//! Nothing is asked here: a [`Review`] is what a `SubjectAccessReview` on the member asks.

use serde_json::{Value as Json, json};

use crate::fields::{list, text};
use crate::identity::Identity;

/// The `ServiceAccount` of the member for which objects are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executor {
    pub namespace: String,
    pub name: String,
}

/// One thing that has to be allowed.
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

/// What writing an RBAC object asks beyond the object itself: nobody gives what they do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Escalation {
    /// It is no RBAC object.
    None,
    /// This one alone is enough; else all of the others.
    Rules { enough: Review, each: Vec<Review> },
    /// This one alone is enough; else [`rules_of`] the role that is bound, as the member has it.
    Binding { enough: Review, role: Role },
}

/// A role on the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub is_cluster_wide: bool,
    pub name: String,
    /// Where what it allows counts; empty: everywhere.
    pub namespace: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooMany {
    #[error("the rules have more than {ITEMS} items: verbs × resources (or URLs) × names")]
    Items,
}

/// Items of all rules of a role, each of which is a review.
pub const ITEMS: usize = 100;
const RBAC: &str = "rbac.authorization.k8s.io";

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

/// What has to be allowed to apply an object, and, if it is owned, to delete it one day.
pub fn reviews(identity: &Identity, version: &str, is_owned: bool) -> Vec<Review> {
    let verbs = ["create", "update", "patch", "get"].into_iter().chain(is_owned.then_some("delete"));
    verbs.map(|verb| Review::of(verb, identity, version)).collect()
}

/// As upstream tells that something is missing.
pub fn refusal(identity: &Identity) -> String {
    let Identity { group, resource, namespace, name } = identity;
    format!("not allowed to apply the resource {group} {resource}, {namespace} {name}")
}

/// What writing `object` asks beyond [`reviews`].
///
/// # Errors
///
/// Its rules have too many items.
pub fn escalation(identity: &Identity, object: &Json) -> Result<Escalation, TooMany> {
    if identity.group != RBAC {
        return Ok(Escalation::None);
    }
    let review = |verb: &str, of: &Identity| Review::of(verb, of, "v1");
    match identity.resource.as_str() {
        "roles" | "clusterroles" => {
            let mut each = rules_of(object, &identity.namespace)?;
            if object.get("aggregationRule").is_some_and(|rule| !rule.is_null()) {
                each.extend(everything());
            }
            Ok(Escalation::Rules { enough: review("escalate", identity), each })
        }
        "rolebindings" | "clusterrolebindings" => {
            let role = Role {
                is_cluster_wide: text(object, "/roleRef/kind") == "ClusterRole",
                name: text(object, "/roleRef/name").to_owned(),
                namespace: identity.namespace.clone(),
            };
            let resource = if role.is_cluster_wide { "clusterroles" } else { "roles" };
            let bound = Identity { resource: resource.to_owned(), name: role.name.clone(), ..identity.clone() };
            Ok(Escalation::Binding { enough: review("bind", &bound), role })
        }
        _ => Ok(Escalation::None),
    }
}

/// What the rules of a role allow in `namespace`, item by item.
///
/// # Errors
///
/// There are too many items.
pub fn rules_of(role: &Json, namespace: &str) -> Result<Vec<Review>, TooMany> {
    let mut items = Vec::new();
    for rule in list(role, "/rules") {
        rule_items(rule, namespace, &mut items)?;
    }
    Ok(items)
}

/// Who writes a role that gathers the rules of others has to be allowed everything, since it will
/// allow whatever these do.
fn everything() -> [Review; 2] {
    let all = Identity { group: "*".to_owned(), resource: "*".to_owned(), ..Identity::default() };
    [Review::of("*", &all, "*"), Review::Url { verb: "*".to_owned(), path: "*".to_owned() }]
}

fn rule_items(rule: &Json, namespace: &str, items: &mut Vec<Review>) -> Result<(), TooMany> {
    let texts = |pointer: &str| list(rule, pointer).iter().filter_map(Json::as_str).collect::<Vec<_>>();
    let (verbs, names) = (texts("/verbs"), texts("/resourceNames"));
    let (groups, resources, urls) = (texts("/apiGroups"), texts("/resources"), texts("/nonResourceURLs"));
    let names = if names.is_empty() { vec![""] } else { names };
    let of_resources = verbs.len().saturating_mul(groups.len()).saturating_mul(resources.len());
    let count = of_resources.saturating_mul(names.len()).saturating_add(verbs.len().saturating_mul(urls.len()));
    if count.saturating_add(items.len()) > ITEMS {
        return Err(TooMany::Items);
    }
    for verb in verbs {
        for path in &urls {
            items.push(Review::Url { verb: verb.to_owned(), path: (*path).to_owned() });
        }
        for (group, resource) in groups.iter().flat_map(|group| resources.iter().map(move |resource| (group, resource)))
        {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            items.extend(names.iter().map(|name| Review::Resource {
                verb: verb.to_owned(),
                group: (*group).to_owned(),
                version: "*".to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: namespace.to_owned(),
                name: (*name).to_owned(),
            }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
