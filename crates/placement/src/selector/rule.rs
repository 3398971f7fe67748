//! One rule of a selector.

use super::{InvalidSelector, Requirement};
use crate::labels::{Labels, Texts};
use crate::names;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rule {
    In {
        key: String,
        values: Texts,
    },
    /// Also matches if there is no such label.
    NotIn {
        key: String,
        values: Texts,
    },
    Exists(String),
    DoesNotExist(String),
}

pub(super) fn expressions(requirements: &[Requirement]) -> impl Iterator<Item = Result<Rule, InvalidSelector>> {
    requirements.iter().map(|requirement| rule(&requirement.key, &requirement.operator, &requirement.values))
}

pub(super) fn rule(key: &str, operator: &str, values: &[String]) -> Result<Rule, InvalidSelector> {
    let (is_set, is_negative) = match operator {
        "In" => (true, false),
        "NotIn" => (true, true),
        "Exists" => (false, false),
        "DoesNotExist" => (false, true),
        other => return Err(InvalidSelector::Operator(other.to_owned())),
    };
    if !names::is_qualified(key) {
        return Err(InvalidSelector::Key(key.to_owned()));
    }
    match (is_set, values) {
        (true, []) => return Err(InvalidSelector::NoValues),
        (false, [_, ..]) => return Err(InvalidSelector::Values(values.to_vec())),
        _ => {}
    }
    if let Some(wrong) = values.iter().find(|value| !names::is_label_value(value)) {
        return Err(InvalidSelector::Value(wrong.clone()));
    }
    let (key, values) = (key.to_owned(), values.iter().collect());
    Ok(match (is_set, is_negative) {
        (true, false) => Rule::In { key, values },
        (true, true) => Rule::NotIn { key, values },
        (false, false) => Rule::Exists(key),
        (false, true) => Rule::DoesNotExist(key),
    })
}

// === impl Rule ===

impl Rule {
    pub(super) fn holds(&self, labels: &Labels) -> bool {
        match self {
            Self::In { key, values } => labels.get(key).is_some_and(|value| values.has(value)),
            Self::NotIn { key, values } => labels.get(key).is_none_or(|value| !values.has(value)),
            Self::Exists(key) => labels.has(key),
            Self::DoesNotExist(key) => !labels.has(key),
        }
    }
}
