//! Functions: their names, parameters and results.

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

use super::check::no_overload;
use super::function::Overload;
use super::types::Type;

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

fn all(purpose: Purpose) -> impl Iterator<Item = &'static Overload> {
    let own = match purpose {
        Purpose::Placement => ocm::PLACEMENT,
        Purpose::Conditions => ocm::CONDITIONS,
    };
    LIBRARIES.into_iter().flatten().chain(own)
}

/// Whether there is a function of this name that is not a method.
pub fn is_function(purpose: Purpose, name: &str) -> bool {
    all(purpose).any(|overload| overload.name == name && !overload.is_member)
}

/// Refuses an unknown time zone in a call of one of `overloads`. The expression would never match,
/// and a Placement would lose its clusters.
///
/// # Errors
///
/// Fails if the call may take a time zone, and `text` is none.
pub fn check_zone(overloads: &[&Overload], text: &str) -> Result<(), String> {
    let takes_zone = overloads.iter().any(|known| known.is_for(&[Type::Timestamp, Type::Text]));
    if !takes_zone || time::offset(text).is_some() {
        return Ok(());
    }
    Err(format!("unknown time zone '{text}': write UTC, or an offset such as '+01:00'"))
}

/// The overloads that may fit the known types of the arguments.
///
/// # Errors
///
/// Fails if there is no such function, or none that takes these types.
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
