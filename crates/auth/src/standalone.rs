//! Authorization without a hub: a policy file in place of RBAC.
//!
//! ```yaml
//! rules:
//! - users: [alice]            # a user matches by name or by any of its groups
//!   groups: [developers]
//!   clusters: [blue, green]   # or ["*"]
//!   verbs: [get, create]      # or ["*"]; reading means get, whatever the member's own verb is
//! ```
//!
//! A rule grants its verbs on `clustergateways/proxy` of its clusters. It also grants reads: `get`
//! of those clusters and their health, and, if its clusters are `"*"`, list and watch of all.
//! Discovery is open to all authenticated users, as by RBAC's `system:discovery`. Nothing else is
//! granted, except to `system:masters`, which may do everything (decided before this module).
//!
//! If proxied requests get a second review, for what they do on the member, the same rules are
//! checked with the member's verb: `list` and `watch` count as `get`, and `deletecollection` as
//! `delete`.

use std::collections::HashSet;
use std::str::Utf8Error;
use std::sync::Arc;

use api::access::{Attributes, ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use arc_swap::ArcSwap;
use serde::Deserialize;

use crate::review::Decision;
use crate::user::{ALL_AUTHENTICATED, User};

const CLUSTERS: &str = "clustergateways";
const VIRTUAL_CLUSTERS: &str = "virtualclusters";
const ANY: &str = "*";
/// Paths that RBAC's `system:discovery` opens: exact, or a subtree if it ends in a slash.
const DISCOVERY: [&str; 9] =
    ["/api", "/api/", "/apis", "/apis/", "/openapi", "/openapi/", "/version", "/version/", "/healthz"];

/// The policy in force. A new one takes effect with the next request.
#[derive(Debug, Clone)]
pub(crate) struct Standalone {
    policy: Arc<ArcSwap<Policy>>,
}

/// Rules, of which any may allow a request. The empty policy allows only discovery.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Policy {
    rules: Vec<Rule>,
}

#[derive(Debug, PartialEq)]
struct Rule {
    users: HashSet<String>,
    groups: HashSet<String>,
    clusters: Option<HashSet<String>>,
    verbs: Option<Vec<Verb>>,
}

/// Why a policy file is invalid.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("the policy is not valid YAML of the expected shape: not UTF-8")]
    Encoding(#[from] Utf8Error),
    #[error("the policy is not valid YAML of the expected shape: {0}")]
    Syntax(#[from] serde_saphyr::Error),
    #[error("rule {rule}: {what}")]
    Rule { rule: usize, what: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    #[serde(default)]
    rules: Vec<RuleFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    #[serde(default)]
    users: Vec<String>,
    #[serde(default)]
    groups: Vec<String>,
    clusters: Vec<String>,
    verbs: Vec<String>,
}

// === impl Standalone ===

impl Standalone {
    pub(crate) fn new(policy: Policy) -> Self {
        Self { policy: Arc::new(ArcSwap::from_pointee(policy)) }
    }

    pub(crate) fn replace(&self, policy: Policy) {
        self.policy.store(Arc::new(policy));
    }

    pub(crate) fn decide(&self, user: &User, attributes: &Attributes) -> Decision {
        let allowed = match attributes {
            Attributes::NonResource { path, verb } => {
                user.is_in(ALL_AUTHENTICATED) && matches!(&**verb, "get" | "head") && is_discovery(path)
            }
            Attributes::Resource(resource) => self.policy.load().allows(user, resource),
        };
        decision(allowed)
    }

    /// The same as [`Standalone::decide`], for what a request does on the member `cluster`.
    pub(crate) fn decide_proxied(&self, user: &User, cluster: &str, attributes: &Attributes) -> Decision {
        let verb = match attributes {
            Attributes::Resource(resource) => match resource.verb {
                Verb::List | Verb::Watch => Verb::Get,
                Verb::DeleteCollection => Verb::Delete,
                verb => verb,
            },
            Attributes::NonResource { verb, .. } => match &**verb {
                "get" | "head" => Verb::Get,
                "post" => Verb::Create,
                "put" => Verb::Update,
                "patch" => Verb::Patch,
                "delete" => Verb::Delete,
                _ => Verb::None,
            },
        };
        decision(self.policy.load().grants(user, cluster, verb))
    }
}

fn decision(allowed: bool) -> Decision {
    if allowed {
        return Decision::Allowed;
    }
    Decision::Denied { reason: Arc::from("no rule of the standalone policy allows it") }
}

fn is_discovery(path: &str) -> bool {
    DISCOVERY.iter().any(|open| path == *open || (open.ends_with('/') && path.starts_with(open)))
}

// === impl Policy ===

impl Policy {
    /// Parses a policy file. An unknown key, verb or cluster name is an error, because a rule
    /// without effect would look like one that works.
    pub(crate) fn parse(yaml: &[u8]) -> Result<Self, PolicyError> {
        let yaml = std::str::from_utf8(yaml)?;
        let file: PolicyFile = serde_saphyr::from_str(yaml)?;
        let rules = file.rules.into_iter().enumerate();
        let rules = rules
            .map(|(index, rule)| Rule::parse(rule).map_err(|what| PolicyError::Rule { rule: index + 1, what }))
            .collect::<Result<_, _>>()?;
        Ok(Self { rules })
    }

    fn grants(&self, user: &User, cluster: &str, verb: Verb) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(user));
        rules.any(|rule| rule.covers(Some(cluster)) && rule.grants(verb))
    }

    fn allows(&self, user: &User, resource: &ResourceAttributes) -> bool {
        if resource.group != api::GROUP || resource.namespace.is_some() {
            return false;
        }
        let name = resource.name.as_deref();
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(user));
        match (&*resource.resource, &*resource.subresource, resource.verb) {
            (CLUSTERS, "proxy", verb) => rules.any(|rule| rule.covers(name) && rule.grants(verb)),
            (CLUSTERS | VIRTUAL_CLUSTERS, "", Verb::Get | Verb::List | Verb::Watch)
            | (CLUSTERS, "health", Verb::Get) => rules.any(|rule| rule.covers(name)),
            _ => false,
        }
    }
}

// === impl Rule ===

impl Rule {
    fn parse(file: RuleFile) -> Result<Self, String> {
        if file.users.is_empty() && file.groups.is_empty() {
            return Err("needs users or groups".to_owned());
        }
        if file.clusters.is_empty() || file.verbs.is_empty() {
            return Err("needs clusters and verbs".to_owned());
        }
        let any_cluster = file.clusters.iter().any(|name| name == ANY);
        for name in file.clusters.iter().filter(|name| *name != ANY) {
            ClusterName::parse(name).map_err(|error| format!("cluster {name:?}: {error}"))?;
        }
        let any_verb = file.verbs.iter().any(|verb| verb == ANY);
        let verbs: Vec<Verb> =
            file.verbs.iter().filter(|verb| *verb != ANY).map(|verb| parse_verb(verb)).collect::<Result<_, _>>()?;
        Ok(Self {
            users: file.users.into_iter().collect(),
            groups: file.groups.into_iter().collect(),
            clusters: (!any_cluster).then(|| file.clusters.into_iter().collect()),
            verbs: (!any_verb).then_some(verbs),
        })
    }

    fn concerns(&self, user: &User) -> bool {
        self.users.contains(&user.name) || user.groups.iter().any(|group| self.groups.contains(group))
    }

    /// A request without a name concerns all clusters.
    fn covers(&self, cluster: Option<&str>) -> bool {
        match (&self.clusters, cluster) {
            (None, _) => true,
            (Some(clusters), Some(cluster)) => clusters.contains(cluster),
            (Some(_), None) => false,
        }
    }

    /// As in RBAC, only `"*"` grants the empty verb of OPTIONS.
    fn grants(&self, verb: Verb) -> bool {
        self.verbs.as_ref().is_none_or(|verbs| verbs.contains(&verb))
    }
}

/// Parses a verb that a proxied request can have.
fn parse_verb(text: &str) -> Result<Verb, String> {
    [Verb::Get, Verb::Create, Verb::Update, Verb::Patch, Verb::Delete]
        .into_iter()
        .find(|verb| verb.as_str() == text)
        .ok_or_else(|| format!("verb {text:?} is not one of get, create, update, patch, delete and \"*\""))
}

#[cfg(test)]
mod tests;
