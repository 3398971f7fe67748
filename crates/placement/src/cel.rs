//! The Common Expression Language (CEL), as Kubernetes and Open Cluster Management use it.
//!
//! An expression is read once ([`Program::compile`]), and then evaluated over borrowed values.
//! Nothing in it can run for long: its text, its levels and its comprehensions are bounded before
//! ([`Limits`]), and each evaluation has a number of steps ([`Meter`]), of which functions take
//! more the more they go through or make.
//!
//! # Why it is written here
//!
//! The interpreters that are published bound neither the steps nor the memory of an evaluation, and
//! copy what they look at. A selector runs over every cluster each time that one of them changes.
//!
//! # What there is
//!
//! The language with its macros (`has`, `all`, `exists`, `exists_one`, `filter`, `map`), optional
//! values with their syntax and macros, and the functions of the standard library. Of extensions:
//! strings, and Kubernetes' lists, regex, URL, quantity, IP, CIDR, format and semver libraries.
//! Open Cluster Management's `scores` and `parseJSON`, or `hasConditions` ([`Purpose`]).
//!
//! # What is missing
//!
//! - names of time zones: UTC and offsets like `+01:00` only. `getHours("Europe/Berlin")` is not
//!   compiled;
//! - protocol buffer messages, enums and wrappers; containers and names that begin with a dot;
//! - the extensions math, sets, encoders, bindings, two-variable comprehensions; Kubernetes'
//!   authorizer and JSON patch libraries: Open Cluster Management has none of them;
//! - types of elements: `[1].all(x, x == "a")` is an error when it is evaluated, not when it is
//!   compiled. What fails there would have failed or not matched here too;
//! - of patterns, RE2's `\Q…\E` and `\B`; its `\pN` classes are the `regex` crate's, whose Unicode
//!   version may differ.

mod check;
mod eval;
mod function;
mod lexer;
mod library;
mod meter;
mod parser;
mod patterns;
mod syntax;
mod token;
mod types;
mod value;

pub use self::function::Host;
pub use self::library::Purpose;
pub use self::meter::{Failure, Meter};
pub use self::parser::Variable;
pub use self::syntax::{Fault, Limits};
pub use self::types::Type;
pub use self::value::Value;

use self::function::Run;
use self::syntax::Expr;

/// An expression that was read.
#[derive(Debug)]
pub struct Program {
    expression: Expr,
}

// === impl Program ===

impl Program {
    /// Reads `text`, a Placement's expression, which may name `variables`.
    ///
    /// # Errors
    ///
    /// It is no expression, beyond [`Limits`], names what there is not, or gives an operator or a
    /// function what it can never take.
    pub fn compile(text: &str, variables: &[Variable]) -> Result<Self, Fault> {
        Self::compile_for(Purpose::Placement, text, variables)
    }

    /// Reads `text`, which is for `purpose` and may name `variables`.
    ///
    /// # Errors
    ///
    /// As [`Self::compile`].
    pub fn compile_for(purpose: Purpose, text: &str, variables: &[Variable]) -> Result<Self, Fault> {
        Ok(Self { expression: parser::parse(purpose, text, variables)? })
    }

    /// The value where `variables` have these values, in the order they were declared in.
    ///
    /// # Errors
    ///
    /// The expression has no value, or finding it takes more steps than `meter` has left.
    pub fn evaluate<'a>(
        &'a self,
        variables: &[Value<'a>],
        host: &dyn Host<'a>,
        meter: &mut Meter,
    ) -> Result<Value<'a>, Failure> {
        let mut run = Run { variables, host, meter, locals: Vec::new(), regex: None };
        run.value(&self.expression)
    }
}

#[cfg(test)]
mod tests;
