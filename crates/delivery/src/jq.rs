//! The part of jq's language that names fields: what upstream puts into `del(…)`.
//!
//! `.a.b`, `."a.b"`, `.[]`, `.[0]`, `.["a"]`, `..`, `?`, `,`, `|`, brackets, `select(…)` with
//! comparisons, `and`, `or`, `not`, `startswith`, `endswith`, `has`, `type`, `length`. Everything
//! else in jq (function definitions, `reduce`, `repeat`, variables, arithmetic) is refused: nothing
//! here can run forever, and the number of visited values is bounded.

mod evaluation;
mod parser;

use serde_json::Value as Json;

use self::parser::Expr;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JqError {
    #[error("the expression is longer than {TEXT} bytes")]
    TooLong,
    #[error("the expression nests more than {NESTING} levels")]
    TooDeep,
    #[error("failed to parse jq expression: {0}")]
    Syntax(String),
    #[error("jq expression returned error: {0}")]
    Value(String),
    #[error("the expression visits more than {VISITS} values")]
    TooMuch,
}

/// Longest expression, in bytes.
const TEXT: usize = 1024;
/// Most brackets and steps of an expression, which may all be nested.
const NESTING: usize = 128;
/// Most values that are visited.
const VISITS: usize = 20_000;

/// A step into a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Key(String),
    At(usize),
}

/// Checks that `text` can be parsed.
///
/// # Errors
///
/// Fails if it cannot, or if it uses more than the supported part of jq.
pub fn check(text: &str) -> Result<(), JqError> {
    read(text).map(|_| ())
}

/// Deletes the values to which `text` leads.
///
/// # Errors
///
/// Fails if `text` cannot be parsed, uses more than the supported part of jq, or fails on this
/// object.
pub fn delete(object: &mut Json, text: &str) -> Result<(), JqError> {
    let mut paths = evaluation::paths(&read(text)?, object)?;
    if paths.iter().any(Vec::is_empty) {
        return Err(JqError::Value("the whole object would be deleted".to_owned()));
    }
    // From last to first: removing an item of a list moves those after it.
    paths.sort_unstable_by(|a, b| b.cmp(a));
    paths.dedup();
    for path in &paths {
        remove(object, path);
    }
    Ok(())
}

fn read(text: &str) -> Result<Expr, JqError> {
    if text.len() > TEXT { Err(JqError::TooLong) } else { parser::read(text) }
}

fn remove(object: &mut Json, path: &[Step]) {
    let Some((last, parents)) = path.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, step| match (value, step) {
        (Json::Object(entries), Step::Key(key)) => entries.get_mut(key),
        (Json::Array(values), Step::At(at)) => values.get_mut(*at),
        _ => None,
    });
    match (parent, last) {
        (Some(Json::Object(entries)), Step::Key(key)) => drop(entries.remove(key)),
        (Some(Json::Array(values)), Step::At(at)) if *at < values.len() => drop(values.remove(*at)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
