//! The users that a credential may impersonate, by its permissions as its API server lists them
//! (`authorization.k8s.io/v1` `SelfSubjectRulesReview`).
//!
//! The list contains RBAC rules. Other authorizers may list nothing. It decides nothing: the
//! gateway only omits from an impersonation what the list lacks, and the member decides about the
//! rest (`k8s.io/apiserver/pkg/endpoints/filters/impersonation`).

mod rule;

use std::collections::{BTreeMap, HashSet};

use self::rule::{Review, Rule, has};

/// The path for a POST of [`QUESTION`], below the endpoint's base path.
pub const PATH: &str = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
/// The list for one namespace includes the cluster-wide permissions. No namespace can have this
/// name, so only those are listed. Impersonation is cluster-scoped.
pub const QUESTION: &str =
    r#"{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectRulesReview","spec":{"namespace":"none.invalid"}}"#;
/// Most names of all rules together, each counted once per resource of its rule. A longer list is
/// not handmade: the credential then counts as one without a list.
const MOST_NAMES: usize = 10_000;

/// The parts of a caller's identity that may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonable {
    groups: Names,
    uids: Names,
    /// The values for one key, or for any key (`None`). Sorted: members list rules in any order.
    extra: BTreeMap<Option<Box<str>>, Names>,
    /// If false, other authorizers may allow more.
    is_complete: bool,
}

/// Why a response is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Untold {
    #[error("it is not a SelfSubjectRulesReview")]
    Shape,
    #[error("its rules about impersonation have more than {MOST_NAMES} names")]
    TooMany,
    /// KEP-5284: permissions to impersonate under conditions, which the list does not show.
    #[error("its rules allow impersonation under conditions")]
    Conditions,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Names {
    All,
    These(HashSet<Box<str>>),
}

const ANY: &str = "*";
const AUTHENTICATION: &str = "authentication.k8s.io";
const EXTRA: &str = "userextras";

// === impl Impersonable ===

impl Impersonable {
    /// For a credential that may do everything, or without a usable list.
    pub fn everything() -> Self {
        let extra = BTreeMap::from([(None, Names::All)]);
        Self { groups: Names::All, uids: Names::All, extra, is_complete: true }
    }

    /// `body` is the response to [`QUESTION`].
    pub fn parse(body: &[u8]) -> Result<Self, Untold> {
        let review: Review = serde_json::from_slice(body).map_err(|_| Untold::Shape)?;
        let status = review.status.filter(|_| review.kind == "SelfSubjectRulesReview").ok_or(Untold::Shape)?;
        let rules = status.resource_rules;
        if rules.iter().any(Rule::has_conditions) {
            return Err(Untold::Conditions);
        }
        let (groups, uids) = (Names::none(), Names::none());
        let mut told = Self { groups, uids, extra: BTreeMap::new(), is_complete: !status.incomplete };
        let mut names = 0;
        for rule in rules.iter().filter(|rule| has(&rule.verbs, "impersonate")) {
            // A kept rule costs its names for each of its resources.
            names += rule.resource_names.len().max(1).saturating_mul(rule.resources.len().max(1));
            if names > MOST_NAMES {
                return Err(Untold::TooMany);
            }
            told.add(rule);
        }
        Ok(told)
    }

    fn add(&mut self, rule: &Rule) {
        if rule.is_about("", "groups") {
            self.groups.add(rule);
        }
        if rule.is_about(AUTHENTICATION, "uids") {
            self.uids.add(rule);
        }
        if has(&rule.api_groups, AUTHENTICATION) {
            for resource in &rule.resources {
                self.add_extra(resource, rule);
            }
        }
    }

    /// A subresource of `userextras` names the key (`rbac.ResourceMatches`).
    fn add_extra(&mut self, resource: &str, rule: &Rule) {
        let key: Option<Box<str>> = match resource.split_once('/') {
            Some((EXTRA | ANY, key)) => Some(key.into()),
            None if resource == ANY => None,
            _ => return,
        };
        self.extra.entry(key).or_insert_with(Names::none).add(rule);
    }

    /// Whether the list is complete.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub fn has_group(&self, name: &str) -> bool {
        self.groups.has(name)
    }

    pub fn has_uid(&self, uid: &str) -> bool {
        self.uids.has(uid)
    }

    /// `key` in lower case, as members read it.
    pub fn has_extra(&self, key: &str, value: &str) -> bool {
        self.extra.iter().any(|(of, values)| of.as_deref().is_none_or(|of| of == key) && values.has(value))
    }
}

// === impl Names ===

impl Names {
    fn none() -> Self {
        Self::These(HashSet::new())
    }

    fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::These(names) => names.contains(name),
        }
    }

    /// A rule without names is about all names.
    fn add(&mut self, rule: &Rule) {
        match self {
            Self::All => {}
            Self::These(_) if rule.resource_names.is_empty() => *self = Self::All,
            Self::These(names) => names.extend(rule.resource_names.iter().map(|name| name.as_str().into())),
        }
    }
}

#[cfg(test)]
mod tests;
