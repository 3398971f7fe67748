//! A path as it was read: names, slices and filters.

#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Field(String),
    Wildcard,
    Recursive,
    Slice(Slice),
    Union(Vec<Vec<Node>>),
    Filter(Box<Filter>),
    Text(String),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// `[start:end:step]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    pub start: Option<i64>,
    pub end: Option<i64>,
    /// Whether it is a single index, from which the end follows.
    pub is_index: bool,
    pub step: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    pub left: Vec<Node>,
    /// `None` tests whether the left side leads anywhere.
    pub comparison: Option<(Comparison, Vec<Node>)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    Unequal,
}

pub(super) const COMPARISONS: [(&str, Comparison); 6] = [
    ("<", Comparison::Less),
    ("<=", Comparison::LessOrEqual),
    (">", Comparison::Greater),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
];
