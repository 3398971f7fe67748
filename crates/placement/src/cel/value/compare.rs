//! Equality and order of values (CEL's language definition, "Equality" and "Ordering").

use std::cmp::Ordering;

use super::{List, Map, Value};
use crate::cel::meter::{Failure, Meter};
use crate::numbers;

impl Value<'_> {
    /// Whether two values are equal. Numbers are compared by value, whatever their types; other
    /// values of different types are never equal.
    pub fn equals(&self, other: &Self, meter: &mut Meter) -> Result<bool, Failure> {
        meter.charge(1)?;
        Ok(match (self, other) {
            (Self::Null, Self::Null) | (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => {
                meter.traverse(a.len().min(b.len()))?;
                **a == **b
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                meter.traverse(a.len().min(b.len()))?;
                a == b
            }
            (Self::List(a), Self::List(b)) => lists(a, b, meter)?,
            (Self::Map(a), Self::Map(b)) => maps(a, b, meter)?,
            (Self::Duration(a), Self::Duration(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Optional(Some(a)), Self::Optional(Some(b))) => a.equals(b, meter)?,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Semver(a), Self::Semver(b)) => a.cmp_precedence(b).is_eq(),
            (Self::Ip(a), Self::Ip(b)) => a == b,
            (Self::Cidr(a), Self::Cidr(b)) => a == b,
            (Self::Url(a), Self::Url(b)) => {
                meter.traverse(a.len().min(b.len()))?;
                a == b
            }
            (Self::Format(a), Self::Format(b)) => a.name == b.name,
            _ => numbers_of(self, other) == Some(Ordering::Equal),
        })
    }

    /// The order of two values of one type, or of two numbers; `None` if they have none.
    pub fn order(&self, other: &Self, meter: &mut Meter) -> Result<Option<Ordering>, Failure> {
        Ok(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => {
                meter.traverse(a.len().min(b.len()))?;
                Some((**a).cmp(&**b))
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                meter.traverse(a.len().min(b.len()))?;
                Some(a.cmp(b))
            }
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            _ => numbers_of(self, other),
        })
    }

    /// Whether both are numbers, or of one type that has an order.
    pub fn is_comparable(&self, other: &Self) -> bool {
        let (a, b) = (self.kind(), other.kind());
        let is_ordered =
            matches!(self, Self::Bool(_) | Self::Text(_) | Self::Bytes(_) | Self::Duration(_) | Self::Timestamp(_));
        (a.is_number() && b.is_number()) || (a == b && is_ordered)
    }
}

fn lists(a: &List<'_>, b: &List<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (a, b) in a.iter().zip(b.iter()) {
        if !a.equals(&b, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn maps(a: &Map<'_>, b: &Map<'_>, meter: &mut Meter) -> Result<bool, Failure> {
    if a.len() != b.len() {
        return Ok(false);
    }
    meter.charge(2 * a.len())?;
    for (key, value) in a.keys().iter().zip(a.values()) {
        match b.get(key, meter)? {
            Some(other) if value.equals(&other, meter)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// The order of two numbers, without loss: an integer is converted to a double only if the other
/// number is a double that is not an integer, or too large for one.
fn numbers_of(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => approximate(a)?.partial_cmp(&approximate(b)?),
    }
}

fn whole(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        Value::Double(value) => numbers::exact(*value).map(i128::from),
        _ => None,
    }
}

fn approximate(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Int(value) => Some(numbers::float(*value)),
        Value::Uint(value) => Some(numbers::float_of_unsigned(*value)),
        Value::Double(value) => Some(*value),
        _ => None,
    }
}
