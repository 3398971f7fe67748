//! Kubernetes' label selectors, over labels and over claims.

mod rule;

use std::collections::BTreeMap;

use serde::Deserialize;

use self::rule::{Rule, expressions, rule};
use crate::labels::Labels;

/// As written. All of it must hold; an empty one selects everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LabelSelector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    pub values: Vec<String>,
}

/// A compiled selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selector {
    rules: Vec<Rule>,
    is_nothing: bool,
}

/// A selector that the API would refuse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelector {
    #[error("{0:?} is not a valid label selector operator")]
    Operator(String),
    #[error("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")]
    NoValues,
    #[error("values: Invalid value: {0:?}: values set must be empty for exists and does not exist")]
    Values(Vec<String>),
    #[error("key: Invalid value: {0:?}: must be a name, with a DNS subdomain and '/' before it or not")]
    Key(String),
    #[error("values: Invalid value: {0:?}: must be at most 63 letters, digits, '-', '_' or '.'")]
    Value(String),
}

// === impl Selector ===

impl Selector {
    /// # Errors
    ///
    /// Fails if the API would refuse the selector.
    pub fn compile(selector: &LabelSelector) -> Result<Self, InvalidSelector> {
        let equal = |(key, value): (&String, &String)| rule(key, "In", std::slice::from_ref(value));
        let labels = selector.match_labels.iter().map(equal);
        let rules: Result<_, _> = labels.chain(expressions(&selector.match_expressions)).collect();
        Ok(Self { rules: rules?, is_nothing: false })
    }

    /// Compiles requirements only, as claims have them.
    ///
    /// # Errors
    ///
    /// Fails if the API would refuse them.
    pub fn of_expressions(requirements: &[Requirement]) -> Result<Self, InvalidSelector> {
        let rules: Result<_, _> = expressions(requirements).collect();
        Ok(Self { rules: rules?, is_nothing: false })
    }

    pub fn nothing() -> Self {
        Self { rules: Vec::new(), is_nothing: true }
    }

    /// Number of names that are looked up.
    pub fn rules(&self) -> usize {
        self.rules.len()
    }

    pub fn matches(&self, labels: &Labels) -> bool {
        !self.is_nothing && self.rules.iter().all(|rule| rule.holds(labels))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn compiled(selector: serde_json::Value) -> Result<Selector, InvalidSelector> {
        Selector::compile(&serde_json::from_value(selector).unwrap())
    }

    #[test]
    fn each_operator_matches_what_it_says() {
        let labels = Labels::from_iter([("env", "prod"), ("gpu", "")]);
        let expression = |key: &str, operator: &str, values: &[&str]| {
            compiled(json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]})).unwrap()
        };
        for (key, operator, values, is_match) in [
            ("env", "In", &["dev", "prod"][..], true),
            ("env", "In", &["dev"], false),
            ("none", "In", &["dev"], false),
            ("env", "NotIn", &["dev"], true),
            ("env", "NotIn", &["prod"], false),
            ("none", "NotIn", &["prod"], true),
            ("gpu", "Exists", &[], true),
            ("none", "Exists", &[], false),
            ("none", "DoesNotExist", &[], true),
            ("gpu", "DoesNotExist", &[], false),
        ] {
            assert_eq!(expression(key, operator, values).matches(&labels), is_match, "{key} {operator} {values:?}");
        }
        assert!(compiled(json!({})).unwrap().matches(&labels) && !Selector::nothing().matches(&labels));
        assert!(compiled(json!({"matchLabels": {"env": "prod", "gpu": ""}})).unwrap().matches(&labels));
        assert!(!compiled(json!({"matchLabels": {"env": "prod", "gpu": "a"}})).unwrap().matches(&labels));
    }

    #[test]
    fn what_the_api_refuses_is_refused_in_its_words() {
        let expression = |key: &str, operator: &str, values: &[&str]| {
            let selector = json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
            compiled(selector).unwrap_err().to_string()
        };
        assert_eq!(expression("a", "Near", &[]), "\"Near\" is not a valid label selector operator");
        assert!(expression("a", "In", &[]).contains("values set can't be empty"));
        assert!(expression("a", "Exists", &["b"]).contains("values set must be empty"));
        assert!(expression("a b", "Exists", &[]).starts_with("key: Invalid value: \"a b\""));
        assert!(expression("a", "In", &["b c"]).starts_with("values: Invalid value: \"b c\""));
        assert!(compiled(json!({"matchLabels": {"": "a"}})).is_err());
    }
}
