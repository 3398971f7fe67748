//! The rules in a `SelfSubjectRulesReview`.

use serde::{Deserialize, Deserializer};

use super::ANY;

#[derive(Deserialize)]
pub(super) struct Review {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Status {
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) resource_rules: Vec<Rule>,
    #[serde(default)]
    pub(super) incomplete: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) api_groups: Vec<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) resources: Vec<String>,
    #[serde(default, deserialize_with = "or_empty")]
    pub(super) resource_names: Vec<String>,
}

/// Go writes `null` for an empty list.
fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(of: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(of)?.unwrap_or_default())
}

// === impl Rule ===

impl Rule {
    pub(super) fn is_about(&self, group: &str, resource: &str) -> bool {
        has(&self.api_groups, group) && has(&self.resources, resource)
    }

    pub(super) fn has_conditions(&self) -> bool {
        self.verbs.iter().any(|verb| verb.starts_with("impersonate:") || verb.starts_with("impersonate-on:"))
    }
}

pub(super) fn has(list: &[String], word: &str) -> bool {
    list.iter().any(|one| one == ANY || one == word)
}
