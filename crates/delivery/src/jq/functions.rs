//! Functions by their names; those of values, and how values compare.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json, json};

use super::JqError;

type Answer = Result<Json, JqError>;

/// Those of values. By name, and how many arguments they take, each of which is one value.
pub const FUNCTIONS: [(&str, usize); 32] = [
    ("not", 0),
    ("type", 0),
    ("length", 0),
    ("keys", 0),
    ("keys_unsorted", 0),
    ("add", 0),
    ("sort", 0),
    ("unique", 0),
    ("reverse", 0),
    ("flatten", 0),
    ("flatten", 1),
    ("tostring", 0),
    ("tonumber", 0),
    ("ascii", 0),
    ("ascii_downcase", 0),
    ("ascii_upcase", 0),
    ("to_entries", 0),
    ("from_entries", 0),
    ("any", 0),
    ("all", 0),
    ("startswith", 1),
    ("endswith", 1),
    ("has", 1),
    ("in", 1),
    ("contains", 1),
    ("inside", 1),
    ("split", 1),
    ("join", 1),
    ("ltrimstr", 1),
    ("rtrimstr", 1),
    ("index", 1),
    ("rindex", 1),
];
/// Those that have any number of answers, or are given expressions.
pub const STREAMS: [(&str, usize); 25] = [
    ("empty", 0),
    ("values", 0),
    ("first", 0),
    ("last", 0),
    ("first", 1),
    ("last", 1),
    ("limit", 2),
    ("recurse", 0),
    ("recurse", 1),
    ("select", 1),
    ("map", 1),
    ("with_entries", 1),
    ("any", 1),
    ("any", 2),
    ("all", 1),
    ("all", 2),
    ("IN", 1),
    ("IN", 2),
    ("paths", 0),
    ("paths", 1),
    ("path", 1),
    ("getpath", 1),
    ("del", 1),
    ("range", 1),
    ("range", 2),
];

/// Of [`FUNCTIONS`], those that go through neither what they are of nor what they are given, unless
/// it is a text.
pub const SHALLOW: [&str; 5] = ["not", "type", "length", "has", "in"];
/// Those that go through the one for each part of the other.
pub const CROSSED: [&str; 4] = ["contains", "inside", "index", "rindex"];
/// Where `from_entries` looks for a key, and for a value.
const KEYS: [&str; 6] = ["key", "k", "name", "Name", "K", "Key"];
const VALUES: [&str; 4] = ["value", "v", "Value", "V"];

pub fn wrong<T>(why: impl Into<String>) -> Result<T, JqError> {
    Err(JqError::Value(why.into()))
}

pub fn is_true(value: &Json) -> bool {
    !matches!(value, Json::Null | Json::Bool(false))
}

pub fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Lists and maps are equal or not. In jq they also have an order, by keys and then by values,
/// which nothing here has a use for.
pub fn compare(mark: &str, left: &Json, right: &Json) -> Result<bool, JqError> {
    let are_of_one_kind = (left.is_array() && right.is_array()) || (left.is_object() && right.is_object());
    if are_of_one_kind && !matches!(mark, "==" | "!=") {
        return unordered(left);
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

fn unordered<T>(one: &Json) -> Result<T, JqError> {
    wrong(format!("two values of type {} are not ordered here", type_of(one)))
}

pub fn are_equal(left: &Json, right: &Json) -> bool {
    order(left, right) == Ordering::Equal
}

/// jq's: null, false, true, numbers, strings, lists, objects. Lists and objects are told apart
/// here, not ordered.
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

pub fn call(name: &str, input: &Json, argument: Option<&Json>) -> Answer {
    let argument = argument.unwrap_or(&Json::Null);
    match name {
        "not" => Ok((!is_true(input)).into()),
        "type" => Ok(type_of(input).into()),
        "tostring" => Ok(text_of(input).into()),
        "any" | "all" => truth(name, input),
        "in" => call("has", argument, Some(input)),
        "contains" => Ok(contains(input, argument)?.into()),
        "inside" => Ok(contains(argument, input)?.into()),
        "ltrimstr" | "rtrimstr" => Ok(trimmed(name, input, argument)),
        _ => match input {
            Json::String(text) => of_text(name, text, argument),
            Json::Array(values) => of_list(name, values, argument),
            Json::Object(entries) => of_map(name, entries, argument),
            Json::Number(number) => of_number(name, number),
            // Null has the length 0, and is nowhere.
            Json::Null if name == "length" => Ok(json!(0)),
            Json::Null if matches!(name, "index" | "rindex" | "add") => Ok(Json::Null),
            _ => cannot(name, input),
        },
    }
}

fn cannot(name: &str, input: &Json) -> Answer {
    wrong(format!("{name} cannot be applied to: {}", type_of(input)))
}

fn text_of(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn truth(name: &str, input: &Json) -> Answer {
    let values: Vec<&Json> = match input {
        Json::Array(values) => values.iter().collect(),
        Json::Object(entries) => entries.values().collect(),
        _ => return cannot(name, input),
    };
    let mut values = values.into_iter();
    Ok(if name == "any" { values.any(is_true) } else { values.all(is_true) }.into())
}

fn of_number(name: &str, number: &serde_json::Number) -> Answer {
    match (name, number.as_i64()) {
        ("tonumber", _) => Ok(Json::Number(number.clone())),
        ("length", Some(number)) => Ok(number.unsigned_abs().into()),
        ("length", None) => Ok(number.as_f64().map(f64::abs).into()),
        ("ascii", Some(code)) => match u32::try_from(code).ok().and_then(char::from_u32) {
            Some(letter) => Ok(letter.to_string().into()),
            None => wrong(format!("no character has the code {code}")),
        },
        _ => cannot(name, &Json::Number(number.clone())),
    }
}

fn of_text(name: &str, text: &str, argument: &Json) -> Answer {
    let part = argument.as_str();
    // jq counts characters.
    let place = |at: Option<usize>| at.map(|at| text[..at].chars().count()).into();
    match (name, part) {
        ("length", _) => Ok(text.chars().count().into()),
        ("tonumber", _) => match serde_json::from_str(text) {
            Ok(number @ Json::Number(_)) => Ok(number),
            _ => wrong(format!("{text:?} is no number")),
        },
        ("ascii_downcase", _) => Ok(text.to_ascii_lowercase().into()),
        ("ascii_upcase", _) => Ok(text.to_ascii_uppercase().into()),
        ("reverse", _) => Ok(text.chars().rev().collect::<String>().into()),
        ("startswith", Some(part)) => Ok(text.starts_with(part).into()),
        ("endswith", Some(part)) => Ok(text.ends_with(part).into()),
        ("split", Some("")) => Ok(text.chars().map(|letter| letter.to_string()).collect::<Vec<_>>().into()),
        ("split", Some(_)) if text.is_empty() => Ok(json!([])),
        ("split", Some(part)) => Ok(text.split(part).collect::<Vec<_>>().into()),
        ("index" | "rindex", Some("")) => Ok(Json::Null),
        ("index", Some(part)) => Ok(place(text.find(part))),
        ("rindex", Some(part)) => Ok(place(text.rfind(part))),
        _ => cannot(name, &Json::String(text.to_owned())),
    }
}

fn of_list(name: &str, values: &[Json], argument: &Json) -> Answer {
    let places = |part: &[Json]| {
        let all: Vec<usize> = values
            .windows(part.len().max(1))
            .enumerate()
            .filter(|(_, some)| !part.is_empty() && some.iter().zip(part).all(|(one, other)| are_equal(one, other)))
            .map(|(at, _)| at)
            .collect();
        if name == "index" { all.first().copied() } else { all.last().copied() }
    };
    match (name, argument) {
        ("length", _) => Ok(values.len().into()),
        ("keys" | "keys_unsorted", _) => Ok((0..values.len()).collect::<Vec<_>>().into()),
        ("has", Json::Number(at)) => {
            Ok(at.as_u64().and_then(|at| usize::try_from(at).ok()).is_some_and(|at| at < values.len()).into())
        }
        ("add", _) => sum(values),
        ("sort", _) => sorted(values).map(Json::from),
        ("unique", _) => {
            let mut all = sorted(values)?;
            all.dedup_by(|one, other| are_equal(one, other));
            Ok(all.into())
        }
        ("reverse", _) => Ok(values.iter().rev().cloned().collect::<Vec<_>>().into()),
        ("flatten", Json::Null) => Ok(flat(values, usize::MAX).into()),
        ("flatten", Json::Number(levels)) => match levels.as_u64() {
            Some(levels) => Ok(flat(values, usize::try_from(levels).unwrap_or(usize::MAX)).into()),
            None => wrong("flatten takes a number of levels"),
        },
        ("from_entries", _) => values.iter().map(entry).collect::<Result<Map<_, _>, _>>().map(Json::Object),
        ("join", Json::String(between)) => joined(values, between),
        ("index" | "rindex", Json::Array(part)) => Ok(places(part).into()),
        ("index" | "rindex", one) => Ok(places(std::slice::from_ref(one)).into()),
        _ => cannot(name, &json!([])),
    }
}

fn of_map(name: &str, entries: &Map<String, Json>, argument: &Json) -> Answer {
    match (name, argument) {
        ("length", _) => Ok(entries.len().into()),
        // They are kept sorted.
        ("keys" | "keys_unsorted", _) => Ok(entries.keys().cloned().collect::<Vec<_>>().into()),
        ("has", Json::String(key)) => Ok(entries.contains_key(key).into()),
        ("add", _) => sum(&entries.values().cloned().collect::<Vec<_>>()),
        ("to_entries", _) => {
            Ok(entries.iter().map(|(key, value)| json!({"key": key, "value": value})).collect::<Vec<_>>().into())
        }
        _ => cannot(name, &json!({})),
    }
}

fn trimmed(name: &str, input: &Json, part: &Json) -> Json {
    let (Some(text), Some(part)) = (input.as_str(), part.as_str()) else { return input.clone() };
    let rest = if name == "ltrimstr" { text.strip_prefix(part) } else { text.strip_suffix(part) };
    rest.unwrap_or(text).into()
}

/// Of lists and maps part by part, of texts a part of the text.
fn contains(whole: &Json, part: &Json) -> Result<bool, JqError> {
    match (whole, part) {
        (Json::Object(whole), Json::Object(part)) => {
            for (key, value) in part {
                if !whole.get(key).is_some_and(|own| contains(own, value).unwrap_or(false)) {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(whole), Json::Array(part)) => {
            Ok(part.iter().all(|one| whole.iter().any(|own| contains(own, one).unwrap_or(false))))
        }
        (Json::String(whole), Json::String(part)) => Ok(whole.contains(part.as_str())),
        _ if type_of(whole) == type_of(part) => Ok(are_equal(whole, part)),
        _ => wrong(format!("a value of type {} contains none of type {}", type_of(whole), type_of(part))),
    }
}

fn sum(values: &[Json]) -> Answer {
    let mut all = Json::Null;
    for value in values {
        match (&mut all, value) {
            (_, Json::Null) => {}
            (Json::Null, value) => all = value.clone(),
            (Json::String(all), Json::String(more)) => all.push_str(more),
            (Json::Array(all), Json::Array(more)) => all.extend_from_slice(more),
            (Json::Object(all), Json::Object(more)) => all.extend(more.clone()),
            (Json::Number(one), Json::Number(other)) => {
                let whole = one.as_i64().zip(other.as_i64()).and_then(|(one, other)| one.checked_add(other));
                let parts = || Some(one.as_f64()? + other.as_f64()?);
                all = whole.map_or_else(|| parts().into(), Json::from);
            }
            (one, other) => return wrong(format!("{} and {} cannot be added", type_of(one), type_of(other))),
        }
    }
    Ok(all)
}

fn sorted(values: &[Json]) -> Result<Vec<Json>, JqError> {
    if let Some(one) = values.iter().find(|value| value.is_array() || value.is_object()) {
        return unordered(one);
    }
    let mut all = values.to_vec();
    all.sort_by(order);
    Ok(all)
}

fn flat(values: &[Json], levels: usize) -> Vec<Json> {
    let each = values.iter().flat_map(|value| match (value, levels.checked_sub(1)) {
        (Json::Array(inner), Some(levels)) => flat(inner, levels),
        _ => vec![value.clone()],
    });
    each.collect()
}

fn joined(values: &[Json], between: &str) -> Answer {
    let text = |value: &Json| match value {
        Json::Null => Ok(String::new()),
        Json::Array(_) | Json::Object(_) => wrong(format!("a value of type {} cannot be joined", type_of(value))),
        value => Ok(text_of(value)),
    };
    let texts = values.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join(between).into())
}

fn entry(one: &Json) -> Result<(String, Json), JqError> {
    let Json::Object(fields) = one else { return wrong(format!("no entry of an object: {}", type_of(one))) };
    let key = match KEYS.iter().filter_map(|name| fields.get(*name)).find(|key| !key.is_null()) {
        Some(Json::Array(_) | Json::Object(_)) => return wrong("the key of an entry is no text"),
        key => text_of(key.unwrap_or(&Json::Null)),
    };
    let value = VALUES.iter().find_map(|name| fields.get(*name)).cloned().unwrap_or_default();
    Ok((key, value))
}
