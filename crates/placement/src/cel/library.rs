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

const LIBRARIES: [&[Overload]; 14] = [
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
    ocm::OVERLOADS,
];

const fn function(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: false, parameters, result, call }
}

const fn method(name: &'static str, parameters: &'static [Type], result: Type, call: Function) -> Overload {
    Overload { name, is_member: true, parameters, result, call }
}

fn all() -> impl Iterator<Item = &'static Overload> {
    LIBRARIES.into_iter().flatten()
}

/// Whether there is a function of this name that is no method.
pub fn is_function(name: &str) -> bool {
    all().any(|overload| overload.name == name && !overload.is_member)
}

/// The overloads that may fit what is known of the arguments.
///
/// # Errors
///
/// There is no such function, or none that takes these.
pub fn overloads(name: &str, is_member: bool, kinds: &[Type]) -> Result<Vec<&'static Overload>, String> {
    let named: Vec<_> = all().filter(|known| known.name == name && known.is_member == is_member).collect();
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
