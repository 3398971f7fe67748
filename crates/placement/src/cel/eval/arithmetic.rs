//! `+ - * / %`. Integers that overflow are errors, and never wrap.

use std::rc::Rc;

use crate::cel::function::Answer;
use crate::cel::meter::{Failure, Meter};
use crate::cel::syntax::Operator;
use crate::cel::value::Value;

pub fn result<'a>(operator: Operator, left: &Value<'a>, right: &Value<'a>, meter: &mut Meter) -> Answer<'a> {
    match (left, right) {
        (Value::Int(a), Value::Int(b)) => ints(operator, *a, *b),
        (Value::Uint(a), Value::Uint(b)) => uints(operator, *a, *b),
        (Value::Double(a), Value::Double(b)) => match operator {
            Operator::Add => Ok(Value::Double(a + b)),
            Operator::Subtract => Ok(Value::Double(a - b)),
            Operator::Multiply => Ok(Value::Double(a * b)),
            Operator::Divide => Ok(Value::Double(a / b)),
            _ => Err(Failure::no_overload()),
        },
        _ if operator == Operator::Add => sum(left, right, meter),
        _ if operator == Operator::Subtract => difference(left, right),
        _ => Err(Failure::no_overload()),
    }
}

pub fn negated<'a>(value: &Value<'a>) -> Answer<'a> {
    match value {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => value.checked_neg().map(Value::Duration).ok_or_else(overflow),
        _ => Err(Failure::no_overload()),
    }
}

/// The operations of one integer type, as a macro: the types have no common trait for them.
macro_rules! integers {
    ($name:ident, $integer:ty, $value:path) => {
        fn $name<'a>(operator: Operator, a: $integer, b: $integer) -> Answer<'a> {
            let found = match operator {
                Operator::Add => a.checked_add(b),
                Operator::Subtract => a.checked_sub(b),
                Operator::Multiply => a.checked_mul(b),
                Operator::Divide | Operator::Remainder if b == 0 => return Err(by_zero(operator)),
                Operator::Divide => a.checked_div(b),
                _ => a.checked_rem(b),
            };
            found.map($value).ok_or_else(overflow)
        }
    };
}

integers!(ints, i64, Value::Int);
integers!(uints, u64, Value::Uint);

fn sum<'a>(left: &Value<'a>, right: &Value<'a>, meter: &mut Meter) -> Answer<'a> {
    match (left, right) {
        (Value::Text(a), Value::Text(b)) => {
            meter.traverse(a.len() + b.len())?;
            Ok(Value::text([&**a, &**b].concat()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.traverse(a.len() + b.len())?;
            Ok(Value::Bytes(Rc::from([&**a, &**b].concat())))
        }
        (Value::List(a), Value::List(b)) => {
            meter.charge(a.len() + b.len())?;
            Ok(Value::list(a.iter().chain(b.iter()).collect()))
        }
        (Value::Duration(a), Value::Duration(b)) => a.checked_add(*b).map(Value::Duration).ok_or_else(overflow),
        (Value::Timestamp(at), Value::Duration(by)) | (Value::Duration(by), Value::Timestamp(at)) => {
            at.checked_add(*by).map(Value::Timestamp).ok_or_else(overflow)
        }
        _ => Err(Failure::no_overload()),
    }
}

fn difference<'a>(left: &Value<'a>, right: &Value<'a>) -> Answer<'a> {
    match (left, right) {
        (Value::Duration(a), Value::Duration(b)) => a.checked_sub(*b).map(Value::Duration).ok_or_else(overflow),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(Value::Duration(*a - *b)),
        (Value::Timestamp(at), Value::Duration(by)) => at.checked_sub(*by).map(Value::Timestamp).ok_or_else(overflow),
        _ => Err(Failure::no_overload()),
    }
}

fn by_zero(operator: Operator) -> Failure {
    Failure::error(if operator == Operator::Divide { "division by zero" } else { "modulus by zero" })
}

fn overflow() -> Failure {
    Failure::error("integer overflow")
}
