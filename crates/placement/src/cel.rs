//! The Common Expression Language (CEL), as Kubernetes and Open Cluster Management use it.
//!
//! An expression is parsed once ([`Program::compile`]), and then evaluated over borrowed values. No
//! expression can run for long: its text, its nesting and its comprehensions are bounded in advance
//! ([`Limits`]), and each evaluation has a number of steps ([`Meter`]), of which functions take
//! more the more they read or create.
//!
//! # Why it is written here
//!
//! Published interpreters bound neither the steps nor the memory of an evaluation, and copy the
//! values that they read. A selector runs over every cluster each time that one of them changes.
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
//! - names of time zones: only UTC and offsets like `+01:00`. `getHours("Europe/Berlin")` does not
//!   compile;
//! - protocol buffer messages, enums and wrappers; containers and names that begin with a dot;
//! - the extensions math, sets, encoders, bindings, two-variable comprehensions; Kubernetes'
//!   authorizer and JSON patch libraries: Open Cluster Management has none of them;
//! - types of elements: `[1].all(x, x == "a")` fails when it is evaluated, not when it is compiled.
//!   An expression that does not compile for that reason upstream fails or does not match here;
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

/// A parsed expression.
#[derive(Debug)]
pub struct Program {
    expression: Expr,
}

// === impl Program ===

impl Program {
    /// Compiles `text`, a Placement's expression, which may use `variables`.
    ///
    /// # Errors
    ///
    /// Fails if `text` is not an expression, exceeds [`Limits`], uses an unknown name, or gives an
    /// operator or a function what it can never take.
    pub fn compile(text: &str, variables: &[Variable]) -> Result<Self, Fault> {
        Self::compile_for(Purpose::Placement, text, variables)
    }

    /// Compiles `text` for `purpose`; it may use `variables`.
    ///
    /// # Errors
    ///
    /// Fails like [`Self::compile`].
    pub fn compile_for(purpose: Purpose, text: &str, variables: &[Variable]) -> Result<Self, Fault> {
        Ok(Self { expression: parser::parse(purpose, text, variables)? })
    }

    /// Evaluates the expression with these values of its `variables`, in the order of their
    /// declaration.
    ///
    /// # Errors
    ///
    /// Fails if the expression has no value, or if evaluating it takes more steps than `meter` has
    /// left.
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
