//! `JSONPath` as Kubernetes has it (client-go `util/jsonpath`), for what upstream accepts in one
//! pair of braces, which are left out here: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Fields, `['key']`, indexes, slices, unions, wildcards, recursive descent, filters with one
//! comparison. There is no `range`: it gives nothing that `[*]` does not.
//!
//! Bounded: the text, brackets within each other, and what is visited.

mod comparison;
mod evaluation;
mod parser;

pub use self::comparison::Basic;
pub use self::evaluation::Found;

use serde_json::Value as Json;

use self::parser::Node;

/// A path that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonPath {
    nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the path is longer than {TEXT} bytes")]
    TooLong,
    #[error("the path nests more than {NESTING} levels")]
    TooDeep,
    #[error("{0}")]
    Syntax(String),
    #[error("{0}")]
    Value(String),
    #[error("the path visits more than {VISITS} values")]
    TooMuch,
}

/// Bytes of a path.
pub const TEXT: usize = 1024;
/// Brackets and filters in each other.
pub const NESTING: usize = 8;
/// Values that are looked at while one path is followed.
pub const VISITS: usize = 20_000;

// === impl JsonPath ===

impl JsonPath {
    /// # Errors
    ///
    /// It is no path, or beyond a bound.
    pub fn read(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT {
            return Err(Error::TooLong);
        }
        parser::read(text, 0).map(|nodes| Self { nodes })
    }

    /// What the path leads to. Keys that are missing lead nowhere, which is no error.
    ///
    /// # Errors
    ///
    /// An index is out of bounds, a filter is on no list or compares what cannot be compared, or
    /// too much is visited.
    pub fn find<'j>(&'j self, object: &'j Json) -> Result<Vec<Found<'j>>, Error> {
        evaluation::follow(&self.nodes, object)
    }
}

#[cfg(test)]
mod tests;
