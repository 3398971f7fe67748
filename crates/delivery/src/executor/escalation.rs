//! What an executor must hold besides to write roles and bindings: their rules, or the right to
//! grant more.

use serde_json::Value as Json;

use super::{Review, VERSION, refusal};
use crate::fields::{list, text};
use crate::identity::{Identity, RBAC};
use crate::strategy::Strategy;

/// The rights needed to write an RBAC object beyond those on the object itself: a user grants no
/// rights that it does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Escalation {
    /// Nothing more is needed, as for objects other than RBAC's.
    None,
    /// `enough` alone suffices; otherwise all of `each` are needed.
    Rules { enough: Review, each: Vec<Review> },
    /// `enough` alone suffices; otherwise [`rules_of`] the bound role, as the member has it, are
    /// needed.
    Binding { enough: Review, role: Role },
}

/// A role on the member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    pub is_cluster_wide: bool,
    pub name: String,
    /// The namespace in which its rules apply; empty for all.
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

/// Most items of all rules of a role. Each is a review.
pub const ITEMS: usize = 100;

// === impl Refused ===

impl Refused {
    /// The text for the report about that object.
    pub fn report(&self, identity: &Identity) -> String {
        format!("{}, error: {self}", refusal(identity))
    }
}

/// The rights needed to write `object` beyond [`reviews`](super::reviews); `observed` is the
/// existing object.
///
/// Server-side apply keeps what the manifest leaves out: an aggregation label on a role that has
/// rules grants these. So both are reviewed. Nothing may change between the review and the request:
/// [`crate::strategy::plan`] sends the version of `observed` with RBAC objects. Only an object that
/// another writer creates in between goes unseen.
///
/// # Errors
///
/// Fails if the object is refused whatever rights the executor has.
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

/// A binding cannot be given another role: the existing role would stay, unseen.
pub(super) fn bound(identity: &Identity, object: &Json, observed: Option<&Json>) -> Result<Escalation, Refused> {
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

/// The rights that the rules of a role grant in `namespace`, item by item.
///
/// # Errors
///
/// Fails if there are too many items.
pub fn rules_of(role: &Json, namespace: &str) -> Result<Vec<Review>, Refused> {
    let mut items = Vec::new();
    for rule in list(role, "/rules") {
        rule_items(rule, namespace, &mut items)?;
    }
    Ok(items)
}

/// The writer of a role that aggregates the rules of other roles needs all rights, because it will
/// grant whatever these allow.
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
