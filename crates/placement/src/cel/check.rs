//! Types of operators: an operation that can succeed for no values is a fault before evaluation.

use super::syntax::{Expr, Operator};
use super::types::Type;

/// Types that have an order.
const ORDERED: [Type; 8] =
    [Type::Bool, Type::Int, Type::Uint, Type::Double, Type::Text, Type::Bytes, Type::Timestamp, Type::Duration];

/// The left and right type of `+`, and that of the sum.
const SUMS: [[Type; 3]; 9] = [
    [Type::Int, Type::Int, Type::Int],
    [Type::Uint, Type::Uint, Type::Uint],
    [Type::Double, Type::Double, Type::Double],
    [Type::Text, Type::Text, Type::Text],
    [Type::Bytes, Type::Bytes, Type::Bytes],
    [Type::List, Type::List, Type::List],
    [Type::Timestamp, Type::Duration, Type::Timestamp],
    [Type::Duration, Type::Timestamp, Type::Timestamp],
    [Type::Duration, Type::Duration, Type::Duration],
];

const DIFFERENCES: [[Type; 3]; 6] = [
    [Type::Int, Type::Int, Type::Int],
    [Type::Uint, Type::Uint, Type::Uint],
    [Type::Double, Type::Double, Type::Double],
    [Type::Timestamp, Type::Timestamp, Type::Duration],
    [Type::Timestamp, Type::Duration, Type::Timestamp],
    [Type::Duration, Type::Duration, Type::Duration],
];

/// The type of `left operator right`.
pub fn binary(operator: Operator, left: &Expr, right: &Expr) -> Result<Type, String> {
    let (a, b) = (left.kind, right.kind);
    let numbers = |count: usize| DIFFERENCES.get(..count).unwrap_or_default();
    let found = match operator {
        Operator::Add => result(&SUMS, a, b),
        Operator::Subtract => result(&DIFFERENCES, a, b),
        Operator::Multiply | Operator::Divide => result(numbers(3), a, b),
        Operator::Remainder => result(numbers(2), a, b),
        Operator::Equal | Operator::Unequal => {
            let is_null = a == Type::Null || b == Type::Null;
            (a.accepts(b) || is_null).then_some(Type::Bool)
        }
        Operator::In => matches!(b, Type::List | Type::Map | Type::Dyn).then_some(Type::Bool),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            let is_ordered = |kind: Type| kind == Type::Dyn || ORDERED.contains(&kind);
            let are_numbers = a.is_number() && b.is_number();
            (is_ordered(a) && is_ordered(b) && (a.accepts(b) || are_numbers)).then_some(Type::Bool)
        }
    };
    found.ok_or_else(|| no_overload(operator.function(), &[a, b]))
}

fn result(table: &[[Type; 3]], a: Type, b: Type) -> Option<Type> {
    let fitting = table.iter().filter(|[left, right, _]| left.accepts(a) && right.accepts(b));
    fitting.map(|[_, _, result]| *result).reduce(Type::joined)
}

pub fn unary(mark: &str, kind: Type) -> Result<Type, String> {
    let fitting: &[Type] = if mark == "!" { &[Type::Bool] } else { &[Type::Int, Type::Double, Type::Duration] };
    let is_fitting = kind == Type::Dyn || fitting.contains(&kind);
    let result = if mark == "!" { Type::Bool } else { kind };
    let function = if mark == "!" { "!_" } else { "-_" };
    if is_fitting { Ok(result) } else { Err(no_overload(function, &[kind])) }
}

/// A part of `&&` or `||`.
pub fn logical(mark: &str, part: &Expr) -> Result<(), String> {
    let function = if mark == "&&" { "_&&_" } else { "_||_" };
    if Type::Bool.accepts(part.kind) { Ok(()) } else { Err(no_overload(function, &[part.kind])) }
}

pub fn condition(condition: &Expr) -> Result<(), String> {
    let is_fitting = Type::Bool.accepts(condition.kind);
    if is_fitting { Ok(()) } else { Err(no_overload("_?_:_", &[condition.kind])) }
}

pub fn indexed(kind: Type) -> Result<(), String> {
    let is_fitting = matches!(kind, Type::Dyn | Type::List | Type::Map | Type::Optional);
    if is_fitting { Ok(()) } else { Err(no_overload("_[_]", &[kind])) }
}

pub fn selected(kind: Type) -> Result<(), String> {
    let is_fitting = matches!(kind, Type::Dyn | Type::Map | Type::Optional);
    if is_fitting { Ok(()) } else { Err(format!("type '{kind}' does not support field selection")) }
}

pub fn no_overload(function: &str, kinds: &[Type]) -> String {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("found no matching overload for '{function}' applied to '({})'", kinds.join(", "))
}
