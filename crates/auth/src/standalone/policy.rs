//! The policy file, and its rules.

use std::collections::HashSet;
use std::str::Utf8Error;

use api::access::{ResourceAttributes, Verb};
use api::cluster_name::ClusterName;
use serde::Deserialize;

use super::{CLUSTERS, VIRTUAL_CLUSTERS};
use crate::user::User;

const ANY: &str = "*";

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

    pub(super) fn grants(&self, user: &User, cluster: &str, verb: Verb) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.concerns(user));
        rules.any(|rule| rule.covers(Some(cluster)) && rule.grants(verb))
    }

    pub(super) fn allows(&self, user: &User, resource: &ResourceAttributes) -> bool {
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
