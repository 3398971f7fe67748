//! `labelSelector`, with the grammar of `k8s.io/apimachinery/pkg/labels/selector.go`.
//!
//! An invalid selector must become a 400, and never an empty selector, which would match every
//! object.

mod parser;

use std::collections::BTreeMap;

pub use self::parser::{is_key, is_value};

/// A parsed label selector: all requirements must hold. The default matches every object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// Why the text is not a valid label selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLabelSelector {
    #[error(
        "unable to parse the label selector: write KEY, !KEY, KEY=VALUE, KEY!=VALUE or KEY in (A,B), separated by commas"
    )]
    Syntax,
    #[error("unable to parse the label selector: a key must be a qualified name such as example.com/name")]
    Key,
    #[error("unable to parse the label selector: a value must be at most 63 letters, digits, '-', '_' or '.'")]
    Value,
    #[error("unable to parse the label selector: '<' and '>' need a whole number")]
    Number,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    In(Vec<String>),
    /// Also holds for objects without the label.
    NotIn(Vec<String>),
    Above(i64),
    Below(i64),
}

// === impl LabelSelector ===

impl LabelSelector {
    pub fn parse(text: &str) -> Result<Self, InvalidLabelSelector> {
        Ok(Self { requirements: parser::requirements(text)? })
    }

    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|one| one.test.holds(labels.get(&one.key)))
    }
}

// === impl Test ===

impl Test {
    fn holds(&self, value: Option<&String>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::In(values) => value.is_some_and(|value| values.contains(value)),
            Self::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Self::Above(limit) => number().is_some_and(|number| number > *limit),
            Self::Below(limit) => number().is_some_and(|number| number < *limit),
        }
    }
}

#[cfg(test)]
mod tests;
