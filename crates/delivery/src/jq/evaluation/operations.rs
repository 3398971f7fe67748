//! Operations on values: comparison, order and calls.

use std::cmp::Ordering;

use serde_json::{Value as Json, json};

use super::wrong;
use crate::jq::JqError;

pub(super) fn is_true(value: &Json) -> bool {
    !matches!(value, Json::Null | Json::Bool(false))
}

pub(super) fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Lists and maps are only compared for equality. jq also orders them, by keys and then by values,
/// for which nothing here has a use.
pub(super) fn compare(mark: &str, left: &Json, right: &Json) -> Result<bool, JqError> {
    let are_of_one_kind = (left.is_array() && right.is_array()) || (left.is_object() && right.is_object());
    if are_of_one_kind && !matches!(mark, "==" | "!=") {
        return wrong(format!("two values of type {} are not ordered here", type_of(left)));
    }
    let order = order(left, right);
    Ok(match mark {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<" => order == Ordering::Less,
        "<=" => order != Ordering::Greater,
        ">" => order == Ordering::Greater,
        _ => order != Ordering::Less,
    })
}

/// jq's order: null, false, true, numbers, strings, lists, objects. Lists are equal or different
/// here, not ordered, and so are objects.
fn order(left: &Json, right: &Json) -> Ordering {
    let rank = |value: &Json| match value {
        Json::Null => 0,
        Json::Bool(false) => 1,
        Json::Bool(true) => 2,
        Json::Number(_) => 3,
        Json::String(_) => 4,
        Json::Array(_) => 5,
        Json::Object(_) => 6,
    };
    match (left, right) {
        (Json::Number(a), Json::Number(b)) => match (a.as_i64(), b.as_i64()) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Less),
        },
        (Json::String(a), Json::String(b)) => a.cmp(b),
        _ if left == right => Ordering::Equal,
        _ => rank(left).cmp(&rank(right)).then(Ordering::Less),
    }
}

pub(super) fn call(name: &str, input: &Json, argument: Option<&Json>) -> Result<Json, JqError> {
    let cannot = || wrong(format!("{name} cannot be applied to: {}", type_of(input)));
    match (name, input, argument) {
        ("not", ..) => Ok((!is_true(input)).into()),
        ("type", ..) => Ok(type_of(input).into()),
        ("length", Json::Null, _) => Ok(json!(0)),
        ("length", Json::String(text), _) => Ok(text.chars().count().into()),
        ("length", Json::Array(values), _) => Ok(values.len().into()),
        ("length", Json::Object(entries), _) => Ok(entries.len().into()),
        ("startswith", Json::String(text), Some(Json::String(part))) => Ok(text.starts_with(part.as_str()).into()),
        ("endswith", Json::String(text), Some(Json::String(part))) => Ok(text.ends_with(part.as_str()).into()),
        ("has", Json::Object(entries), Some(Json::String(key))) => Ok(entries.contains_key(key).into()),
        ("has", Json::Array(values), Some(Json::Number(at))) => {
            Ok(at.as_u64().and_then(|at| usize::try_from(at).ok()).is_some_and(|at| at < values.len()).into())
        }
        _ => cannot(),
    }
}
