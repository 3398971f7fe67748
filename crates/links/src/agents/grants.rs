//! Derives from the hub's roles which clusters they allow to link.

use std::collections::HashMap;

use api::GROUP;
use foldhash::quality::RandomState;
use k8s_openapi::api::rbac::v1::{ClusterRole, PolicyRule};
use tunnel::ClusterName;

/// Most roles whose clusters are remembered; a change of any other role may concern all clusters.
const MOST_ROLES: usize = 65_536;
/// Most names remembered for one role; one with more concerns all clusters.
const MOST_NAMES: usize = 1_024;
const RESOURCES: [&str; 3] = ["clustergateways/tunnel", "*/tunnel", "*"];

/// The clusters that a change concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concerned {
    /// No cluster if the list is empty.
    Named(Box<[ClusterName]>),
    All,
}

/// The roles that allow to link clusters, by the role's name.
#[derive(Debug, Default)]
pub struct Grants {
    roles: HashMap<String, Concerned, RandomState>,
    /// Whether there are roles that are not remembered.
    is_full: bool,
}

// === impl Grants ===

impl Grants {
    /// Takes in a role. Returns the clusters that the change concerns: none if the role allows the
    /// same as before.
    pub fn apply(&mut self, role: &ClusterRole) -> Concerned {
        let name = role.metadata.name.as_deref().unwrap_or_default();
        let granted = Concerned::of(role);
        let before = self.roles.get(name);
        if before == Some(&granted) {
            return Concerned::none();
        }
        let changed = before.map_or_else(|| granted.clone(), |before| before.and(&granted));
        if granted == Concerned::none() {
            self.roles.remove(name);
        } else if before.is_some() || self.roles.len() < MOST_ROLES {
            self.roles.insert(name.to_owned(), granted);
        } else {
            self.is_full = true;
        }
        changed
    }

    /// Takes in the deletion of a role. Returns the clusters that it concerns.
    pub fn remove(&mut self, role: &ClusterRole) -> Concerned {
        let name = role.metadata.name.as_deref().unwrap_or_default();
        self.roles.remove(name).unwrap_or_else(|| Concerned::of(role))
    }

    /// The clusters that a change of a binding of the `ClusterRole` `role` concerns.
    pub fn bound(&self, role: &str) -> Concerned {
        let unknown = || if self.is_full { Concerned::All } else { Concerned::none() };
        self.roles.get(role).cloned().unwrap_or_else(unknown)
    }
}

// === impl Concerned ===

impl Concerned {
    pub fn none() -> Self {
        Self::Named(Box::default())
    }

    /// The clusters that a role allows to link.
    fn of(role: &ClusterRole) -> Self {
        let mut names = Vec::new();
        for rule in role.rules.iter().flatten().filter(|rule| is_about_links(rule)) {
            match rule.resource_names.as_deref() {
                None | Some([]) => return Self::All,
                Some(given) => names.extend(given.iter().filter_map(|name| ClusterName::parse(name).ok())),
            }
            if names.len() > MOST_NAMES {
                return Self::All;
            }
        }
        names.sort_unstable();
        names.dedup();
        Self::Named(names.into())
    }

    fn and(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Named(own), Self::Named(others)) => {
                let mut all: Vec<_> = own.iter().chain(others).cloned().collect();
                all.sort_unstable();
                all.dedup();
                Self::Named(all.into())
            }
            _ => Self::All,
        }
    }
}

/// Whether a rule allows `create clustergateways/tunnel`, by the hub's RBAC rules (`VerbMatches`, …
/// in `k8s.io/kubernetes/pkg/apis/rbac/v1/evaluation_helpers.go`).
fn is_about_links(rule: &PolicyRule) -> bool {
    let has = |texts: Option<&Vec<String>>, wanted: &[&str]| {
        texts.is_some_and(|texts| texts.iter().any(|text| wanted.contains(&text.as_str())))
    };
    has(Some(&rule.verbs), &["create", "*"])
        && has(rule.api_groups.as_ref(), &[GROUP, "*"])
        && has(rule.resources.as_ref(), &RESOURCES)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn role(name: &str, rules: &Value) -> ClusterRole {
        serde_json::from_value(json!({"metadata": {"name": name}, "rules": rules})).unwrap()
    }

    fn tunnel(names: &[&str]) -> Value {
        json!([{"apiGroups": [GROUP], "resources": ["clustergateways/tunnel"], "resourceNames": names, "verbs": ["create"]}])
    }

    fn named(names: &[&str]) -> Concerned {
        Concerned::Named(names.iter().map(|name| ClusterName::parse(name).unwrap()).collect())
    }

    #[test]
    fn a_role_concerns_those_whom_it_lets_link_or_did() {
        let mut grants = Grants::default();
        assert_eq!(grants.apply(&role("a", &tunnel(&["west", "east"]))), named(&["east", "west"]));
        assert_eq!(grants.apply(&role("a", &tunnel(&["east", "west"]))), named(&[]), "it says the same");
        assert_eq!(grants.apply(&role("a", &tunnel(&["east", "north"]))), named(&["east", "north", "west"]));
        assert_eq!(grants.bound("a"), named(&["east", "north"]));
        assert_eq!(grants.apply(&role("a", &json!([]))), named(&["east", "north"]));
        assert_eq!(grants.bound("a"), named(&[]));
        grants.apply(&role("a", &tunnel(&["east"])));
        assert_eq!(grants.remove(&role("a", &Value::Null)), named(&["east"]));
    }

    #[test]
    fn rules_are_matched_as_the_hub_does() {
        let rule = |groups: &[&str], resources: &[&str], verbs: &[&str]| {
            let rule = json!([{"apiGroups": groups, "resources": resources, "verbs": verbs}]);
            Grants::default().apply(&role("a", &rule))
        };
        for all in [
            rule(&["*"], &["*"], &["*"]),
            rule(&[GROUP], &["clustergateways/tunnel"], &["create"]),
            rule(&["apps", GROUP], &["*/tunnel"], &["get", "create"]),
        ] {
            assert_eq!(all, Concerned::All);
        }
        for nobody in [
            rule(&["apps"], &["*"], &["*"]),
            rule(&[GROUP], &["clustergateways", "clustergateways/proxy"], &["create"]),
            rule(&[GROUP], &["clustergateways/tunnel"], &["get"]),
            rule(&[], &["*"], &["*"]),
        ] {
            assert_eq!(nobody, named(&[]));
        }
    }
}
