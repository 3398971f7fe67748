//! Functions: their parameters and results, and the evaluation in which they run.

use super::meter::{Failure, Meter};
use super::patterns::Pattern;
use super::types::Type;
use super::value::Value;

pub type Answer<'a> = Result<Value<'a>, Failure>;

/// Data that expressions may request from outside.
pub trait Host<'a> {
    /// Names and values of the `AddOnPlacementScore` `resource` of `cluster`, if there is one.
    fn scores(&self, cluster: &str, resource: &str) -> Option<Vec<(&'a str, i64)>>;
}

/// One evaluation.
pub struct Run<'m, 'a> {
    pub variables: &'m [Value<'a>],
    pub host: &'m dyn Host<'a>,
    pub meter: &'m mut Meter,
    /// Variables of the enclosing comprehensions, outermost first.
    pub locals: Vec<Value<'a>>,
    /// The pattern of the current call, if it was a constant.
    pub regex: Option<&'a Pattern>,
}

type Function = for<'m, 'a> fn(&mut Run<'m, 'a>, &[Value<'a>]) -> Answer<'a>;

/// A function for arguments of certain types.
#[derive(Debug)]
pub struct Overload {
    pub name: &'static str,
    /// Whether the first parameter precedes the name: `a.f(b)`.
    pub is_member: bool,
    parameters: &'static [Type],
    pub result: Type,
    pub call: Function,
}

pub const fn function(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: false, parameters, result, call }
}

pub const fn method(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: true, parameters, result, call }
}

// === impl Overload ===

impl Overload {
    /// Whether its parameters are exactly these.
    pub fn is_for(&self, parameters: &[Type]) -> bool {
        self.parameters == parameters
    }

    pub fn takes(&self, kinds: impl ExactSizeIterator<Item = Type>) -> bool {
        kinds.len() == self.parameters.len()
            && self.parameters.iter().zip(kinds).all(|(parameter, kind)| parameter.accepts(kind))
    }
}
