//! Conditions from rules: expressions (CEL) over the object.

mod evaluator;

use serde_json::Value as Json;

use crate::fields::text;

pub use self::evaluator::Evaluator;

/// A rule for a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The type of the condition.
    pub condition: String,
    pub source: Source,
    /// The message if the expression for it gives none.
    pub message: String,
    pub message_expression: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The well-known rule for the object's kind, if there is one.
    WellKnown,
    /// All must be true.
    Expressions(Vec<String>),
    /// An invalid rule, and why.
    Invalid(String),
}

/// Most steps of all rules of a work.
pub const WORK: u64 = 50_000_000;
/// Most steps of all rules of an object.
pub const OBJECT: u64 = 10_000_000;
/// Most steps of one expression.
pub const EXPRESSION: u64 = 1_000_000;
/// Most different expressions of all rules of a work, because each takes time to compile.
pub const EXPRESSIONS: usize = 64;
/// Most rules of an object. Each makes a condition.
pub const RULES: usize = 64;

/// The type of a condition for rules that cannot have one of their own.
pub const INVALID_RULE: &str = "ConditionRuleInvalid";

/// Reasons of these conditions.
pub const EVALUATED: &str = "ConditionRuleEvaluated";
pub const INVALID: &str = "ConditionRuleInvalid";
pub const EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
/// The expression is not the cause.
pub const INTERNAL_ERROR: &str = "ConditionRuleInternalError";

const JOB_IS_COMPLETE: &str = "hasConditions(object.status) ? \
    object.status.conditions.filter(c, c.type == 'Complete' || c.type == 'Failed').exists(c, c.status == 'True') : false";
const JOB_MESSAGE: &str = r#"result ? "Job is finished" : "Job is not finished""#;
const POD_IS_COMPLETE: &str = "object.status.phase in ['Succeeded', 'Failed']";
const POD_MESSAGE: &str = r#""Pod is in phase " + object.status.phase"#;

// === impl Source ===

impl Default for Source {
    fn default() -> Self {
        Self::Expressions(Vec::new())
    }
}

/// The expression, and the expression for its message.
fn well_known(object: &Json, condition: &str) -> Option<(&'static str, &'static str)> {
    match (text(object, "/apiVersion"), text(object, "/kind"), condition) {
        ("batch/v1", "Job", "Complete") => Some((JOB_IS_COMPLETE, JOB_MESSAGE)),
        ("v1", "Pod", "Complete") => Some((POD_IS_COMPLETE, POD_MESSAGE)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
