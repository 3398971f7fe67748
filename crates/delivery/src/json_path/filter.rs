//! Filters: `[?(left == right)]`, or `[?(left)]` for whether it is there.

use std::cmp::Ordering;

use super::evaluation::Found;
use super::parser::{Comparison, Filter, Node, read as read_nodes};
use super::{Error, NESTING};

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
];

/// The first marks of a comparison part it, wherever they stand, as in client-go.
pub fn read(text: &str, depth: usize) -> Result<Node, Error> {
    if depth > NESTING {
        return Err(Error::TooDeep);
    }
    let is_mark = |c: char| matches!(c, '!' | '<' | '>' | '=');
    let parted = text.find(is_mark).filter(|at| *at > 0).and_then(|at| {
        let (left, rest) = text.split_at_checked(at)?;
        let end = rest.find(|c| !is_mark(c))?;
        let (marks, right) = rest.split_at_checked(end)?;
        Some((left, marks, right))
    });
    let (left, comparison) = match parted {
        None => (text, None),
        Some((left, marks, right)) => {
            let known = COMPARISONS.iter().find(|(known, _)| *known == marks);
            let (_, comparison) =
                known.ok_or_else(|| Error::Syntax(format!("unrecognized filter operator {marks}")))?;
            (left, Some((*comparison, read_nodes(right, depth)?)))
        }
    };
    Ok(Node::Filter(Box::new(Filter { left: read_nodes(left, depth)?, comparison })))
}

/// Compares as Go's templates do: only values of one basic kind.
pub fn holds(comparison: Comparison, left: &Found<'_>, right: &Found<'_>) -> Result<bool, Error> {
    let order = order(left, right)?;
    let unordered = || Error::Value("invalid type for comparison".to_owned());
    let is_bool = matches!(left.basic(), Some(Basic::Bool(_)));
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

/// A value that can be compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Basic<'j> {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(&'j str),
}

fn order(left: &Found<'_>, right: &Found<'_>) -> Result<Option<Ordering>, Error> {
    let wrong = |why: &str| Err(Error::Value(why.to_owned()));
    let (Some(left), Some(right)) = (left.basic(), right.basic()) else {
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
