//! The parts of a parsed expression, and faults of parsing.

use std::fmt;
use std::rc::Rc;

use super::function::Overload;
use super::patterns::Pattern;
use super::types::Type;
use super::value::Value;

/// Limits of an expression, checked before any evaluation.
pub struct Limits;

/// An expression that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Position in the text, in bytes.
    pub at: usize,
    pub why: String,
}

/// A part of an expression.
#[derive(Debug)]
pub struct Expr {
    pub node: Node,
    /// The type, as far as it is known without evaluation.
    pub kind: Type,
    /// Number of levels, including this one.
    pub depth: usize,
}

#[derive(Debug)]
pub enum Node {
    Constant(Constant),
    /// One of the variables that the caller gives, by position.
    Variable(usize),
    /// A variable of an enclosing comprehension, counted from the outermost.
    Local(usize),
    Select {
        of: Box<Expr>,
        field: Box<str>,
        is_optional: bool,
    },
    Has {
        of: Box<Expr>,
        field: Box<str>,
    },
    Index {
        of: Box<Expr>,
        index: Box<Expr>,
        is_optional: bool,
    },
    List(Vec<Element>),
    Map(Vec<(Expr, Element)>),
    Call {
        overloads: Vec<&'static Overload>,
        arguments: Vec<Expr>,
        regex: Option<Pattern>,
    },
    Not(Box<Expr>),
    Negate(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Binary {
        operator: Operator,
        sides: Box<[Expr; 2]>,
    },
    If(Box<[Expr; 3]>),
    Fold(Box<Fold>),
}

/// An element of a list, or the value of a map's entry: an optional one that is empty is left out.
#[derive(Debug)]
pub struct Element {
    pub value: Expr,
    pub is_optional: bool,
}

/// A macro with a variable.
#[derive(Debug)]
pub struct Fold {
    pub rule: Rule,
    pub over: Expr,
    /// Position of the variable among the locals while this runs.
    pub local: usize,
    /// The condition of `map` with three arguments.
    pub condition: Option<Expr>,
    pub body: Expr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    /// `optMap` and `optFlatMap`.
    Optional {
        is_flat: bool,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum Constant {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Box<str>),
    Bytes(Box<[u8]>),
    /// A type as a value: `type(1) == int`.
    Type(Type),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

// === impl Limits ===

impl Limits {
    /// Longest expression, in bytes.
    pub const TEXT: usize = 16 * 1024;
    /// Deepest nesting of brackets, arguments and conditions.
    pub const NESTING: usize = 32;
    /// Most levels, including operators and members in a row: `a.b.c + d` has four.
    pub const DEPTH: usize = 96;
    /// Deepest nesting of comprehensions.
    pub const FOLDS: usize = 6;
    /// Most constant patterns, which are compiled with the expression.
    pub const PATTERNS: usize = 16;
}

// === impl Fault ===

impl Fault {
    pub fn new(at: usize, why: impl Into<String>) -> Self {
        Self { at, why: why.into() }
    }

    pub fn syntax(at: usize, why: impl fmt::Display) -> Self {
        Self { at, why: format!("Syntax error: {why}") }
    }

    /// The fault with its line and column in `text`, and the line itself, as cel-go writes it.
    pub fn within(&self, text: &str) -> String {
        let before = text.get(..self.at.min(text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
        let source = text.lines().nth(line - 1).unwrap_or_default();
        let dots = ".".repeat(column);
        format!("ERROR: <input>:{line}:{}: {}\n | {source}\n | {dots}^", column + 1, self.why)
    }
}

// === impl Value ===

impl<'a> From<&'a Constant> for Value<'a> {
    fn from(constant: &'a Constant) -> Self {
        match constant {
            Constant::Null => Self::Null,
            Constant::Bool(is_true) => Self::Bool(*is_true),
            Constant::Int(value) => Self::Int(*value),
            Constant::Uint(value) => Self::Uint(*value),
            Constant::Double(value) => Self::Double(*value),
            Constant::Text(text) => Self::from(&**text),
            Constant::Bytes(bytes) => Self::Bytes(Rc::from(&**bytes)),
            Constant::Type(kind) => Self::Type(*kind),
        }
    }
}

// === impl Operator ===

impl Operator {
    /// cel-go's name of the function behind it.
    pub fn function(self) -> &'static str {
        match self {
            Self::Add => "_+_",
            Self::Subtract => "_-_",
            Self::Multiply => "_*_",
            Self::Divide => "_/_",
            Self::Remainder => "_%_",
            Self::Equal => "_==_",
            Self::Unequal => "_!=_",
            Self::Less => "_<_",
            Self::LessOrEqual => "_<=_",
            Self::Greater => "_>_",
            Self::GreaterOrEqual => "_>=_",
            Self::In => "@in",
        }
    }
}
