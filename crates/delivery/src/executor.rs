//! What a work's executor has to be allowed before an object is written for it.
//!
//! Nothing is asked here: a [`Review`] is what a `SubjectAccessReview` on the member asks.

use serde_json::{Value as Json, json};

use crate::fields::{list, text};
use crate::identity::{Identity, RBAC};
use crate::strategy::Strategy;

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

/// What writing an RBAC object asks beyond the object itself: a user gives no rights that it does
/// not have.
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

/// Why an executor may not write an RBAC object at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("the rules have more than {ITEMS} items: verbs × resources (or URLs) × names")]
    TooMany,
    #[error("ignoreFields are not possible for RBAC objects with an executor")]
    IgnoreFields,
    #[error("roleRef names no Role or ClusterRole")]
    NoRole,
    #[error("roleRef differs from that of the existing object")]
    OtherRole,
}

/// Items of all rules of a role, each of which is a review.
pub const ITEMS: usize = 100;
/// Of RBAC objects.
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

// === impl Refused ===

impl Refused {
    /// As the report about that object has it.
    pub fn told(&self, identity: &Identity) -> String {
        format!("{}, error: {self}", refusal(identity))
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

/// What has to be allowed to do with an object what its strategy does, and, if it is owned, to
/// delete it one day.
pub fn reviews(identity: &Identity, version: &str, is_owned: bool, strategy: &Strategy) -> Vec<Review> {
    let verbs: &[&str] = match strategy {
        Strategy::ReadOnly => &["get"],
        _ => &["create", "update", "patch", "get"],
    };
    let verbs = verbs.iter().copied().chain(is_owned.then_some("delete"));
    verbs.map(|verb| Review::of(verb, identity, version)).collect()
}

/// What has to be allowed to take an object away.
pub fn removal(identity: &Identity, version: &str) -> Review {
    Review::of("delete", identity, version)
}

/// As upstream tells that something is missing.
pub fn refusal(identity: &Identity) -> String {
    let Identity { group, resource, namespace, name } = identity;
    format!("not allowed to apply the resource {group} {resource}, {namespace} {name}")
}

/// As upstream tells that more would be given than the executor has.
pub fn escalated(identity: &Identity) -> String {
    format!("{}, error: permission escalation", refusal(identity))
}

/// What writing `object` asks beyond [`reviews`], where `observed` is what is there.
///
/// By server-side apply, what is there stays where the manifest says nothing: an aggregation label
/// on a role that has rules gives these. So both are reviewed. Between the review and the request
/// nothing may change: [`crate::strategy::plan`] sends the version of the `observed` with RBAC
/// objects. Only one that another writer creates in between goes unseen.
///
/// # Errors
///
/// It is refused whatever the executor may do.
pub fn escalation(
    identity: &Identity,
    object: &Json,
    observed: Option<&Json>,
    strategy: &Strategy,
) -> Result<Escalation, Refused> {
    if identity.group != RBAC || *strategy == Strategy::ReadOnly {
        return Ok(Escalation::None);
    }
    if matches!(strategy, Strategy::ServerSideApply(config) if !config.ignore.is_empty()) {
        return Err(Refused::IgnoreFields);
    }
    let kept = observed.filter(|_| matches!(strategy, Strategy::ServerSideApply(_)));
    match identity.resource.as_str() {
        "roles" | "clusterroles" => gathered(identity, object, kept),
        "rolebindings" | "clusterrolebindings" => bound(identity, object, observed),
        _ => Ok(Escalation::None),
    }
}

fn gathered(identity: &Identity, object: &Json, kept: Option<&Json>) -> Result<Escalation, Refused> {
    let mut each = Vec::new();
    for role in [Some(object), kept].into_iter().flatten() {
        for review in rules_of(role, &identity.namespace)? {
            if !each.contains(&review) {
                each.push(review);
            }
        }
    }
    let gathers = |role: &Json| role.get("aggregationRule").is_some_and(|rule| !rule.is_null());
    if gathers(object) || kept.is_some_and(gathers) {
        each.extend(everything());
    }
    Ok(Escalation::Rules { enough: Review::of("escalate", identity, VERSION), each })
}

/// A role cannot be bound in the place of another one: what is there would stay, unseen.
fn bound(identity: &Identity, object: &Json, observed: Option<&Json>) -> Result<Escalation, Refused> {
    let role_of = |binding: &Json| {
        let is_rbac = matches!(text(binding, "/roleRef/apiGroup"), "" | RBAC);
        let is_cluster_wide = match text(binding, "/roleRef/kind") {
            "ClusterRole" if is_rbac => true,
            "Role" if is_rbac && identity.resource == "rolebindings" => false,
            _ => return None,
        };
        let name = text(binding, "/roleRef/name").to_owned();
        (!name.is_empty()).then(|| Role { is_cluster_wide, name, namespace: identity.namespace.clone() })
    };
    let role = role_of(object).ok_or(Refused::NoRole)?;
    if observed.is_some_and(|observed| role_of(observed).as_ref() != Some(&role)) {
        return Err(Refused::OtherRole);
    }
    let resource = if role.is_cluster_wide { "clusterroles" } else { "roles" };
    let of = Identity { resource: resource.to_owned(), name: role.name.clone(), ..identity.clone() };
    Ok(Escalation::Binding { enough: Review::of("bind", &of, VERSION), role })
}

/// What the rules of a role allow in `namespace`, item by item.
///
/// # Errors
///
/// There are too many items.
pub fn rules_of(role: &Json, namespace: &str) -> Result<Vec<Review>, Refused> {
    let mut items = Vec::new();
    for rule in list(role, "/rules") {
        rule_items(rule, namespace, &mut items)?;
    }
    Ok(items)
}

/// The writer of a role that gathers the rules of others has to be allowed everything, since it
/// will allow whatever these do.
fn everything() -> [Review; 2] {
    let all = Identity { group: "*".to_owned(), resource: "*".to_owned(), ..Identity::default() };
    [Review::of("*", &all, "*"), Review::Url { verb: "*".to_owned(), path: "*".to_owned() }]
}

fn rule_items(rule: &Json, namespace: &str, items: &mut Vec<Review>) -> Result<(), Refused> {
    let texts = |pointer: &str| list(rule, pointer).iter().filter_map(Json::as_str).collect::<Vec<_>>();
    let (verbs, names) = (texts("/verbs"), texts("/resourceNames"));
    let (groups, resources, urls) = (texts("/apiGroups"), texts("/resources"), texts("/nonResourceURLs"));
    let names = if names.is_empty() { vec![""] } else { names };
    let of_resources = verbs.len().saturating_mul(groups.len()).saturating_mul(resources.len());
    let count = of_resources.saturating_mul(names.len()).saturating_add(verbs.len().saturating_mul(urls.len()));
    if count.saturating_add(items.len()) > ITEMS {
        return Err(Refused::TooMany);
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
