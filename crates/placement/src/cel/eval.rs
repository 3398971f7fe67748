//! Evaluation: a walk over the expression that pays for each step.

mod arithmetic;
mod folds;

pub use self::arithmetic::result as arithmetic;

use super::function::{Answer, Overload, Run};
use super::meter::Failure;
use super::patterns::Pattern;
use super::syntax::{Constant, Element, Expr, Node, Operator};
use super::types::Type;
use super::value::{Map, Value};
use crate::tree::{self, Entry, Tree};

/// Deepest value, see [`Value::depth`]: more levels than any object of Kubernetes has.
const DEEPEST: usize = 200;
/// Most parameters of a function.
const ARGUMENTS: usize = 4;

/// The value to which a chain of fields leads.
enum Within<'a> {
    Map(&'a [Entry]),
    Other(&'a Tree),
}

// === impl Run ===

impl<'a> Run<'_, 'a> {
    pub fn value(&mut self, expression: &'a Expr) -> Answer<'a> {
        self.meter.charge(1)?;
        let found = self.evaluated(expression)?;
        if found.depth() > DEEPEST {
            return Err(Failure::error("a value is nested too deep"));
        }
        Ok(found)
    }

    fn evaluated(&mut self, expression: &'a Expr) -> Answer<'a> {
        match &expression.node {
            Node::Constant(constant) => {
                if let Constant::Bytes(bytes) = constant {
                    self.meter.traverse(bytes.len())?;
                }
                Ok(Value::from(constant))
            }
            Node::Variable(at) => self.variables.get(*at).cloned().ok_or_else(|| Failure::error("no such variable")),
            Node::Local(at) => self.locals.get(*at).cloned().ok_or_else(|| Failure::error("no such variable")),
            Node::Select { of, field, is_optional } => {
                let of = self.whole(of)?;
                self.selected(of, field, *is_optional)
            }
            Node::Has { of, field } => {
                let of = self.whole(of)?;
                self.has(&of, field).map(Value::Bool)
            }
            Node::Index { of, index, is_optional } => {
                let (of, index) = (self.whole(of)?, self.value(index)?);
                self.indexed(of, &index, *is_optional)
            }
            Node::List(elements) => self.list(elements),
            Node::Map(entries) => self.map(entries),
            Node::Call { overloads, arguments, regex } => self.call(overloads, arguments, regex.as_ref()),
            Node::Not(of) => match self.value(of)? {
                Value::Bool(is_true) => Ok(Value::Bool(!is_true)),
                _ => Err(Failure::no_overload()),
            },
            Node::Negate(of) => arithmetic::negated(&self.value(of)?),
            Node::And(parts) => self.logical(parts, false),
            Node::Or(parts) => self.logical(parts, true),
            Node::Binary { operator, sides } => {
                let [left, right] = &**sides;
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(*operator, &left, &right)
            }
            Node::If(parts) => {
                let [condition, yes, no] = &**parts;
                match self.value(condition)? {
                    Value::Bool(is_true) => self.value(if is_true { yes } else { no }),
                    _ => Err(Failure::no_overload()),
                }
            }
            Node::Fold(fold) => self.fold(fold),
        }
    }

    /// The value from which something is selected: mostly a map within the input.
    fn whole(&mut self, expression: &'a Expr) -> Answer<'a> {
        match self.within_input(expression)? {
            Some(Within::Map(entries)) => Ok(Value::Map(Map::Tree(entries))),
            Some(Within::Other(tree)) => Ok(Value::from(tree)),
            None => self.value(expression),
        }
    }

    /// Follows a chain of fields from a variable. `None` if `expression` is not such a chain; then
    /// nothing was charged.
    fn within_input(&mut self, expression: &'a Expr) -> Result<Option<Within<'a>>, Failure> {
        match &expression.node {
            Node::Variable(at) => {
                let Some(Value::Map(Map::Tree(entries))) = self.variables.get(*at) else { return Ok(None) };
                self.meter.charge(1)?;
                Ok(Some(Within::Map(entries)))
            }
            Node::Select { of, field, is_optional: false } => {
                let Some(of) = self.within_input(of)? else { return Ok(None) };
                self.meter.charge(1)?;
                let Within::Map(entries) = of else { return Err(Failure::no_overload()) };
                match tree::get(entries, field) {
                    Some(Tree::Map(entries)) => Ok(Some(Within::Map(entries))),
                    Some(other) => Ok(Some(Within::Other(other))),
                    None => Err(no_such_key(field)),
                }
            }
            _ => Ok(None),
        }
    }

    /// `&&` of the parts, or `||`: one `decisive` part decides, whatever the others are.
    fn logical(&mut self, parts: &'a [Expr], decisive: bool) -> Answer<'a> {
        let mut failure = None;
        for part in parts {
            match self.value(part) {
                Ok(Value::Bool(is_true)) if is_true == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => failure = failure.or(Some(Failure::no_overload())),
                Err(Failure::Exhausted) => return Err(Failure::Exhausted),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        failure.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn selected(&mut self, of: Value<'a>, field: &str, is_optional: bool) -> Answer<'a> {
        match of {
            Value::Map(map) => {
                let found = map.field(field, self.meter)?;
                if is_optional { Ok(Value::optional(found)) } else { found.ok_or_else(|| no_such_key(field)) }
            }
            Value::Optional(None) => Ok(Value::Optional(None)),
            Value::Optional(Some(inside)) => self.selected((*inside).clone(), field, true),
            _ => Err(Failure::no_overload()),
        }
    }

    fn has(&mut self, of: &Value<'a>, field: &str) -> Result<bool, Failure> {
        match of {
            Value::Map(map) => Ok(map.field(field, self.meter)?.is_some()),
            Value::Optional(None) => Ok(false),
            Value::Optional(Some(inside)) => self.has(inside, field),
            _ => Err(Failure::no_overload()),
        }
    }

    fn indexed(&mut self, of: Value<'a>, index: &Value<'a>, is_optional: bool) -> Answer<'a> {
        let found = match of {
            Value::Map(map) => map.get(index, self.meter)?,
            Value::List(list) => list.get(position(index)?),
            Value::Optional(None) => return Ok(Value::Optional(None)),
            Value::Optional(Some(inside)) => return self.indexed((*inside).clone(), index, true),
            _ => return Err(Failure::no_overload()),
        };
        if is_optional { Ok(Value::optional(found)) } else { found.ok_or_else(|| missing(index)) }
    }

    fn list(&mut self, elements: &'a [Element]) -> Answer<'a> {
        let mut values = Vec::with_capacity(elements.len());
        for element in elements {
            values.extend(self.element(element)?);
        }
        Ok(Value::list(values))
    }

    fn map(&mut self, entries: &'a [(Expr, Element)]) -> Answer<'a> {
        let mut built: Vec<(Value<'a>, Value<'a>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = self.value(key)?;
            if !matches!(key.kind(), Type::Text | Type::Bool | Type::Int | Type::Uint) {
                return Err(Failure::error("unsupported key type"));
            }
            for (known, _) in &built {
                if known.equals(&key, self.meter)? {
                    return Err(Failure::error("Failed with repeated key"));
                }
            }
            built.extend(self.element(value)?.map(|value| (key, value)));
        }
        Ok(Value::map(built))
    }

    fn element(&mut self, element: &'a Element) -> Result<Option<Value<'a>>, Failure> {
        let value = self.value(&element.value)?;
        match value {
            Value::Optional(inside) if element.is_optional => Ok(inside.map(|inside| (*inside).clone())),
            _ if element.is_optional => Err(Failure::error("an optional element is not an optional value")),
            value => Ok(Some(value)),
        }
    }

    fn call(
        &mut self,
        overloads: &'a [&'static Overload],
        arguments: &'a [Expr],
        regex: Option<&'a Pattern>,
    ) -> Answer<'a> {
        let mut values: [Value<'a>; ARGUMENTS] = [Value::Null, Value::Null, Value::Null, Value::Null];
        for (value, argument) in values.iter_mut().zip(arguments) {
            *value = self.value(argument)?;
            // Few functions read less than all of a text.
            match value {
                Value::Text(text) => self.meter.traverse(text.len())?,
                Value::Bytes(bytes) => self.meter.traverse(bytes.len())?,
                _ => {}
            }
        }
        let values = values.get(..arguments.len()).ok_or_else(Failure::no_overload)?;
        let fits = |overload: &&&Overload| overload.takes(values.iter().map(Value::kind));
        let overload = overloads.iter().find(fits).ok_or_else(Failure::no_overload)?;
        self.regex = regex;
        (overload.call)(self, values)
    }

    fn binary(&mut self, operator: Operator, left: &Value<'a>, right: &Value<'a>) -> Answer<'a> {
        let is_true = match operator {
            Operator::Equal => left.equals(right, self.meter)?,
            Operator::Unequal => !left.equals(right, self.meter)?,
            Operator::In => return self.within(left, right).map(Value::Bool),
            Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
                if !left.is_comparable(right) {
                    return Err(Failure::no_overload());
                }
                // NaN is neither less nor greater.
                left.order(right, self.meter)?.is_some_and(|order| match operator {
                    Operator::Less => order.is_lt(),
                    Operator::LessOrEqual => order.is_le(),
                    Operator::Greater => order.is_gt(),
                    _ => order.is_ge(),
                })
            }
            _ => return arithmetic::result(operator, left, right, self.meter),
        };
        Ok(Value::Bool(is_true))
    }

    fn within(&mut self, value: &Value<'a>, whole: &Value<'a>) -> Result<bool, Failure> {
        match whole {
            Value::Map(map) => Ok(map.get(value, self.meter)?.is_some()),
            Value::List(list) => {
                for element in list.iter() {
                    if element.equals(value, self.meter)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            _ => Err(Failure::no_overload()),
        }
    }
}

fn no_such_key(key: &str) -> Failure {
    Failure::error(format!("no such key: {key}"))
}

fn missing(index: &Value<'_>) -> Failure {
    match index {
        Value::Text(key) => no_such_key(key),
        Value::Int(at) => Failure::error(format!("index out of bounds: {at}")),
        _ => Failure::error("no such key"),
    }
}

/// A position in a list. A negative one is beyond any list: it leads nowhere.
fn position(index: &Value<'_>) -> Result<usize, Failure> {
    let whole = match index {
        Value::Int(at) => Some(*at),
        Value::Uint(at) => i64::try_from(*at).ok(),
        Value::Double(at) => crate::numbers::exact(*at),
        _ => None,
    };
    let whole = whole.ok_or_else(|| Failure::error("unsupported index type in list"))?;
    Ok(usize::try_from(whole).unwrap_or(usize::MAX))
}
