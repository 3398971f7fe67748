//! Functions: what they are called, what they take, what they give.

mod cidr;
mod conversions;
mod format;
mod ip;
mod lists;
mod ocm;
mod optional;
mod quantity;
mod regex;
mod semver;
mod strings;
mod strings_format;
mod time;
mod url;

pub use self::format::Format;
pub use self::url::Url;

use super::check::no_overload;
use super::eval::{Answer, Run};
use super::types::Type;
use super::value::Value;

type Function = for<'m, 'a> fn(&mut Run<'m, 'a>, &[Value<'a>]) -> Answer<'a>;

/// A function for arguments of certain types.
#[derive(Debug)]
pub struct Overload {
    name: &'static str,
    /// The first parameter stands before the name: `a.f(b)`.
    is_member: bool,
    parameters: &'static [Type],
    pub result: Type,
    pub call: Function,
}

/// What an expression is for: each has functions of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A predicate of a Placement: `scores`, `parseJSON`.
    Placement,
    /// A rule for a condition of a manifest: `hasConditions`.
    Conditions,
}

const LIBRARIES: [&[Overload]; 13] = [
    conversions::OVERLOADS,
    strings::OVERLOADS,
    strings_format::OVERLOADS,
    lists::OVERLOADS,
    regex::OVERLOADS,
    optional::OVERLOADS,
    time::OVERLOADS,
    quantity::OVERLOADS,
    semver::OVERLOADS,
    ip::OVERLOADS,
    cidr::OVERLOADS,
    url::OVERLOADS,
    format::OVERLOADS,
];

const fn function(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: false, parameters, result, call }
}

const fn method(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: true, parameters, result, call }
}

fn all(purpose: Purpose) -> impl Iterator<Item = &'static Overload> {
    let own = match purpose {
        Purpose::Placement => ocm::PLACEMENT,
        Purpose::Conditions => ocm::CONDITIONS,
    };
    LIBRARIES.into_iter().flatten().chain(own)
}

/// Whether there is a function of this name that is no method.
pub fn is_function(purpose: Purpose, name: &str) -> bool {
    all(purpose).any(|overload| overload.name == name && !overload.is_member)
}

/// The overloads that may fit what is known of the arguments.
///
/// # Errors
///
/// There is no such function, or none that takes these.
pub fn overloads(
    purpose: Purpose,
    name: &str,
    is_member: bool,
    kinds: &[Type],
) -> Result<Vec<&'static Overload>, String> {
    let named: Vec<_> = all(purpose).filter(|known| known.name == name && known.is_member == is_member).collect();
    if named.is_empty() {
        return Err(format!("undeclared reference to '{name}' (in container '')"));
    }
    let fitting: Vec<_> = named.into_iter().filter(|known| known.takes(kinds.iter().copied())).collect();
    if fitting.is_empty() { Err(no_overload(name, kinds)) } else { Ok(fitting) }
}

// === impl Overload ===

impl Overload {
    pub fn takes(&self, kinds: impl ExactSizeIterator<Item = Type>) -> bool {
        kinds.len() == self.parameters.len()
            && self.parameters.iter().zip(kinds).all(|(parameter, kind)| parameter.accepts(kind))
    }
}
