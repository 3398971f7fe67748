//! Evaluates rules on objects, within limits of steps and expressions.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use placement::cel::{Failure, Host, Meter, Program, Purpose, Type, Value, Variable};
use serde_json::Value as Json;

use super::{
    EVALUATED, EXPRESSION, EXPRESSION_ERROR, EXPRESSIONS, INTERNAL_ERROR, INVALID, INVALID_RULE, OBJECT, RULES, Rule,
    Source, WORK, well_known,
};
use crate::condition::{Condition, Status};
use crate::fields::visible;

const RULE_VARIABLES: [Variable; 1] = [("object", Type::Dyn)];
const MESSAGE_VARIABLES: [Variable; 2] = [("object", Type::Dyn), ("result", Type::Bool)];

/// Evaluates the rules of one work. Each expression is compiled once, and the steps of all are
/// bounded.
pub struct Evaluator {
    work: u64,
    object: u64,
    programs: HashMap<(bool, String), Arc<Result<Program, Fault>>>,
}

/// Why a rule has no result.
#[derive(Debug, Clone)]
enum Fault {
    Expression(String),
    /// The expression was not compiled, because the work has too many others.
    Internal(String),
}

/// There are no scores here.
struct NoScores;

impl<'a> Host<'a> for NoScores {
    fn scores(&self, _: &str, _: &str) -> Option<Vec<(&'a str, i64)>> {
        None
    }
}

// === impl Evaluator ===

impl Default for Evaluator {
    fn default() -> Self {
        Self::within(WORK)
    }
}

impl Evaluator {
    /// For a work that may take `steps` steps.
    pub fn within(steps: u64) -> Self {
        Self { work: steps, object: 0, programs: HashMap::new() }
    }

    /// The conditions of `object` by `rules`, in their order, at the work's `generation`. A
    /// well-known rule gives none for a kind that has none. The data of a `Secret` is left out.
    pub fn evaluate(&mut self, object: &Json, rules: &[Rule], generation: i64) -> Vec<Condition> {
        let object = visible(object);
        self.object = OBJECT.min(self.work);
        let made = rules.iter().take(RULES).filter_map(|rule| self.condition(&object, rule));
        let mut made: Vec<Condition> = made.map(|condition| condition.at(generation)).collect();
        if rules.len() > RULES {
            let message = format!("there are more than {RULES} rules");
            made.push(Condition::new(INVALID_RULE, Status::Unknown, INVALID, message).at(generation));
        }
        made
    }

    fn condition(&mut self, object: &Json, rule: &Rule) -> Option<Condition> {
        let (expressions, default): (Cow<'_, [String]>, &str) = match &rule.source {
            Source::Expressions(all) => (Cow::Borrowed(all), ""),
            Source::WellKnown => {
                let (expression, message) = well_known(object, &rule.condition)?;
                (Cow::Owned(vec![expression.to_owned()]), message)
            }
            Source::Invalid(why) => {
                return Some(Condition::new(&rule.condition, Status::Unknown, INVALID, why.clone()));
            }
        };
        let is_true = self.all_true(object, &expressions);
        Some(match is_true {
            Err(Fault::Expression(why)) => Condition::new(&rule.condition, Status::False, EXPRESSION_ERROR, why),
            Err(Fault::Internal(why)) => Condition::new(&rule.condition, Status::Unknown, INTERNAL_ERROR, why),
            Ok(is_true) => {
                let status = if is_true { Status::True } else { Status::False };
                Condition::new(&rule.condition, status, EVALUATED, self.message(object, rule, default, is_true))
            }
        })
    }

    /// Stops at the first that is not true.
    fn all_true(&mut self, object: &Json, expressions: &[String]) -> Result<bool, Fault> {
        for text in expressions {
            let program = self.compiled(text, false);
            match self.value(program.as_ref().as_ref().map_err(Clone::clone)?, &[Value::from(object)])? {
                Value::Bool(true) => {}
                Value::Bool(false) => return Ok(false),
                other => {
                    return Err(Fault::Expression(format!("expected bool result, got {}", go_type(&other))));
                }
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
            Err(Fault::Expression(why) | Fault::Internal(why)) => {
                why.split("\n | ").next().unwrap_or_default().to_owned()
            }
        }
    }

    fn text(&mut self, object: &Json, expression: &str, is_true: bool) -> Result<String, Fault> {
        let program = self.compiled(expression, true);
        match self
            .value(program.as_ref().as_ref().map_err(Clone::clone)?, &[Value::from(object), Value::Bool(is_true)])?
        {
            Value::Text(text) => Ok(text.to_string()),
            other => Err(Fault::Expression(format!(
                "expected message expression to have a string result, got {}",
                go_type(&other)
            ))),
        }
    }

    fn compiled(&mut self, text: &str, is_message: bool) -> Arc<Result<Program, Fault>> {
        let key = (is_message, text.to_owned());
        if let Some(known) = self.programs.get(&key) {
            return Arc::clone(known);
        }
        if self.programs.len() >= EXPRESSIONS {
            return Arc::new(Err(Fault::Internal(format!("there are more than {EXPRESSIONS} expressions"))));
        }
        let variables: &[Variable] = if is_message { &MESSAGE_VARIABLES } else { &RULE_VARIABLES };
        let program = Program::compile_for(Purpose::Conditions, text, variables);
        let program = Arc::new(program.map_err(|fault| Fault::Expression(fault.within(text))));
        self.programs.insert(key, Arc::clone(&program));
        program
    }

    fn value<'a>(&mut self, program: &'a Program, variables: &[Value<'a>]) -> Result<Value<'a>, Fault> {
        let steps = EXPRESSION.min(self.object);
        let mut meter = Meter::new(steps);
        let found = program.evaluate(variables, &NoScores, &mut meter);
        let taken = steps - meter.left();
        self.object -= taken;
        self.work -= taken;
        found.map_err(|failure| {
            Fault::Expression(match failure {
                Failure::Error(why) => why.into_owned(),
                Failure::Exhausted => "CEL evaluation budget exceeded".to_owned(),
            })
        })
    }
}

/// Go's name for the type of a value.
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
