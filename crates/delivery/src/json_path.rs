//! `JSONPath` as Kubernetes has it (client-go `util/jsonpath`), for what upstream accepts in one
//! pair of braces, which are left out here: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! Fields, `['key']`, indexes, slices, unions, wildcards, recursive descent, filters with one
//! comparison. There is no `range`: it gives nothing that `[*]` does not.
//!
//! The text, the nesting of brackets, and the number of visited values are bounded.

mod comparison;
mod evaluation;
mod parser;

pub use self::comparison::Basic;
pub use self::evaluation::Found;

use serde_json::Value as Json;

use self::parser::Node;

/// A parsed path.
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

/// Longest path, in bytes.
pub const TEXT: usize = 1024;
/// Deepest nesting of brackets and filters.
pub const NESTING: usize = 8;
/// Most values that one path visits.
pub const VISITS: usize = 20_000;

// === impl JsonPath ===

impl JsonPath {
    /// # Errors
    ///
    /// Fails if `text` is not a path, or beyond a limit.
    pub fn read(text: &str) -> Result<Self, Error> {
        if text.len() > TEXT {
            return Err(Error::TooLong);
        }
        parser::read(text, 0).map(|nodes| Self { nodes })
    }

    /// The values to which the path leads. A missing key leads nowhere, which is no error.
    ///
    /// # Errors
    ///
    /// Fails if an index is out of bounds, a filter is not on a list or compares values that cannot
    /// be compared, or too many values are visited.
    pub fn find<'j>(&'j self, object: &'j Json) -> Result<Vec<Found<'j>>, Error> {
        evaluation::follow(&self.nodes, object)
    }
}

#[cfg(test)]
mod tests;
