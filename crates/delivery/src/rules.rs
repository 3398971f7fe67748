//! Conditions that rules find by expressions (CEL) over the object.

use std::borrow::Cow;

use placement::cel::{Failure, Host, Meter, Program, Purpose, Type, Value, Variable};
use serde_json::Value as Json;

use crate::condition::{Condition, Status};
use crate::fields::text;

/// A rule for a condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// The type of the condition.
    pub condition: String,
    pub source: Source,
    /// The message, if the expression for it gives none.
    pub message: String,
    pub message_expression: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// What is commonly meant for its kind, if there is such a thing.
    WellKnown,
    /// All have to be true.
    Expressions(Vec<String>),
    /// A kind of rule that there is not.
    Unknown(String),
}

/// Steps of all rules of an object.
pub const OBJECT: u64 = 10_000_000;
/// Steps of one expression.
pub const EXPRESSION: u64 = 1_000_000;
/// Expressions of all rules of an object, since each takes its time to be compiled.
pub const EXPRESSIONS: usize = 64;

/// Reasons of these conditions.
pub const EVALUATED: &str = "ConditionRuleEvaluated";
pub const INVALID: &str = "ConditionRuleInvalid";
pub const EXPRESSION_ERROR: &str = "ConditionRuleExpressionError";
pub const INTERNAL_ERROR: &str = "ConditionRuleInternalError";

const RULE_VARIABLES: [Variable; 1] = [("object", Type::Dyn)];
const MESSAGE_VARIABLES: [Variable; 2] = [("object", Type::Dyn), ("result", Type::Bool)];

const JOB_IS_COMPLETE: &str = "hasConditions(object.status) ? \
    object.status.conditions.filter(c, c.type == 'Complete' || c.type == 'Failed').exists(c, c.status == 'True') : false";
const JOB_MESSAGE: &str = r#"result ? "Job is finished" : "Job is not finished""#;
const POD_IS_COMPLETE: &str = "object.status.phase in ['Succeeded', 'Failed']";
const POD_MESSAGE: &str = r#""Pod is in phase " + object.status.phase"#;

/// The conditions of `object` by `rules`, in their order. A well-known rule for a kind that has
/// none gives none.
pub fn evaluate(object: &Json, rules: &[Rule]) -> Vec<Condition> {
    evaluate_within(object, rules, OBJECT)
}

/// The same, in so many steps.
pub fn evaluate_within(object: &Json, rules: &[Rule], steps: u64) -> Vec<Condition> {
    let mut budget = Budget { steps, expressions: EXPRESSIONS };
    rules.iter().filter_map(|rule| budget.condition(object, rule)).collect()
}

/// There are no scores here.
struct NoScores;

impl<'a> Host<'a> for NoScores {
    fn scores(&self, _: &str, _: &str) -> Option<Vec<(&'a str, i64)>> {
        None
    }
}

struct Budget {
    steps: u64,
    expressions: usize,
}

// === impl Source ===

impl Default for Source {
    fn default() -> Self {
        Self::Expressions(Vec::new())
    }
}

// === impl Budget ===

impl Budget {
    fn condition(&mut self, object: &Json, rule: &Rule) -> Option<Condition> {
        let (expressions, default): (Cow<'_, [String]>, &str) = match &rule.source {
            Source::Expressions(all) => (Cow::Borrowed(all), ""),
            Source::WellKnown => {
                let (expression, message) = well_known(object, &rule.condition)?;
                (Cow::Owned(vec![expression.to_owned()]), message)
            }
            Source::Unknown(kind) => {
                let message = format!("unrecognized condition rule type {kind}");
                return Some(Condition::new(&rule.condition, Status::Unknown, INVALID, message));
            }
        };
        let is_true = self.all_true(object, &expressions);
        Some(match is_true {
            Err(why) => Condition::new(&rule.condition, Status::False, EXPRESSION_ERROR, why),
            Ok(is_true) => {
                let status = if is_true { Status::True } else { Status::False };
                Condition::new(&rule.condition, status, EVALUATED, self.message(object, rule, default, is_true))
            }
        })
    }

    /// The first that is not true ends it.
    fn all_true(&mut self, object: &Json, expressions: &[String]) -> Result<bool, String> {
        for text in expressions {
            let program = self.compiled(text, &RULE_VARIABLES)?;
            match self.value(&program, &[Value::from(object)])? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(false),
                other => return Err(format!("expected bool result, got {}", go_type(&other))),
            }
        }
        Ok(true)
    }

    fn message(&mut self, object: &Json, rule: &Rule, default: &str, is_true: bool) -> String {
        let expression = if rule.message_expression.is_empty() { default } else { &rule.message_expression };
        let found = if expression.is_empty() { Ok(String::new()) } else { self.text(object, expression, is_true) };
        match found {
            Ok(message) if !message.is_empty() => message,
            Ok(_) if !rule.message.is_empty() => rule.message.clone(),
            Ok(_) => format!("Manifest is {}{}", if is_true { "" } else { "not " }, rule.condition),
            // Without the line of the expression that is shown below it.
            Err(why) => why.split("\n | ").next().unwrap_or_default().to_owned(),
        }
    }

    fn text(&mut self, object: &Json, expression: &str, is_true: bool) -> Result<String, String> {
        let program = self.compiled(expression, &MESSAGE_VARIABLES)?;
        match self.value(&program, &[Value::from(object), Value::Bool(is_true)])? {
            Value::Text(text) => Ok(text.to_string()),
            other => Err(format!("expected message expression to have a string result, got {}", go_type(&other))),
        }
    }

    fn compiled(&mut self, text: &str, variables: &[Variable]) -> Result<Program, String> {
        let left = self.expressions.checked_sub(1);
        self.expressions = left.ok_or_else(|| format!("there are more than {EXPRESSIONS} expressions"))?;
        Program::compile_for(Purpose::Conditions, text, variables).map_err(|fault| fault.within(text))
    }

    fn value<'a>(&mut self, program: &'a Program, variables: &[Value<'a>]) -> Result<Value<'a>, String> {
        let steps = EXPRESSION.min(self.steps);
        let mut meter = Meter::new(steps);
        let found = program.evaluate(variables, &NoScores, &mut meter);
        self.steps -= steps - meter.left();
        found.map_err(|failure| match failure {
            Failure::Error(why) => why.into_owned(),
            Failure::Exhausted => "CEL evaluation budget exceeded".to_owned(),
        })
    }
}

/// Expression and expression for the message.
fn well_known(object: &Json, condition: &str) -> Option<(&'static str, &'static str)> {
    match (text(object, "/apiVersion"), text(object, "/kind"), condition) {
        ("batch/v1", "Job", "Complete") => Some((JOB_IS_COMPLETE, JOB_MESSAGE)),
        ("v1", "Pod", "Complete") => Some((POD_IS_COMPLETE, POD_MESSAGE)),
        _ => None,
    }
}

/// As Go names the type of a value.
fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Text(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::List(_) => "[]interface {}",
        Value::Map(_) => "map[string]interface {}",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        other => other.kind().name(),
    }
}

#[cfg(test)]
mod tests;
