//! Comparisons of filters.

use std::cmp::Ordering;

use super::Error;
use super::parser::Comparison;

/// A value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basic<'j> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'j str),
}

/// Compares as Go's templates do: only values of one basic kind.
pub fn holds(comparison: Comparison, left: Option<Basic<'_>>, right: Option<Basic<'_>>) -> Result<bool, Error> {
    let order = order(left, right)?;
    let unordered = || Error::Value("invalid type for comparison".to_owned());
    let is_bool = matches!(left, Some(Basic::Bool(_)));
    match comparison {
        Comparison::Equal => Ok(order == Some(Ordering::Equal)),
        Comparison::Unequal => Ok(order != Some(Ordering::Equal)),
        _ if is_bool => Err(unordered()),
        Comparison::Less => Ok(order == Some(Ordering::Less)),
        Comparison::LessOrEqual => Ok(matches!(order, Some(Ordering::Less | Ordering::Equal))),
        Comparison::Greater => Ok(order == Some(Ordering::Greater)),
        Comparison::GreaterOrEqual => Ok(matches!(order, Some(Ordering::Greater | Ordering::Equal))),
    }
}

fn order(left: Option<Basic<'_>>, right: Option<Basic<'_>>) -> Result<Option<Ordering>, Error> {
    let wrong = |why: &str| Err(Error::Value(why.to_owned()));
    let (Some(left), Some(right)) = (left, right) else {
        return wrong("invalid type for comparison");
    };
    match (left, right) {
        (Basic::Bool(a), Basic::Bool(b)) => Ok(Some(a.cmp(&b))),
        (Basic::Int(a), Basic::Int(b)) => Ok(Some(a.cmp(&b))),
        (Basic::Float(a), Basic::Float(b)) => Ok(a.partial_cmp(&b)),
        (Basic::Text(a), Basic::Text(b)) => Ok(Some(a.cmp(b))),
        _ => wrong("incompatible types for comparison"),
    }
}
