//! Fields of an object's JSON, by path (`spec.apiEndpoint`).
//!
//! Absent, null and empty are the same, as in Go. A field with another type than upstream's is
//! refused by its path: the object may be of an unknown version.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use crate::Refused;

/// A time in the format of `metav1.Time`: RFC 3339 in UTC, whole seconds.
pub fn moment(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// No field name contains a dot, so paths need no escapes.
pub(crate) fn field<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |value, name| value.get(name)).filter(|value| !value.is_null())
}

pub(crate) fn text<'a>(object: &'a Value, path: &'static str) -> Result<&'a str, Refused> {
    field(object, path).map_or(Ok(""), |value| value.as_str().ok_or(Refused::Shape(path)))
}

/// A required text.
pub(crate) fn required<'a>(object: &'a Value, path: &'static str) -> Result<&'a str, Refused> {
    text(object, path).and_then(|text| if text.is_empty() { Err(Refused::Empty(path)) } else { Ok(text) })
}

pub(crate) fn flag(object: &Value, path: &'static str) -> Result<bool, Refused> {
    field(object, path).map_or(Ok(false), |value| value.as_bool().ok_or(Refused::Shape(path)))
}

pub(crate) fn list<'a>(object: &'a Value, path: &'static str) -> Result<&'a [Value], Refused> {
    let list = field(object, path).map(|value| value.as_array().ok_or(Refused::Shape(path))).transpose()?;
    Ok(list.map_or(&[], Vec::as_slice))
}

pub(crate) fn texts(object: &Value, path: &'static str) -> Result<BTreeMap<String, String>, Refused> {
    let Some(value) = field(object, path) else { return Ok(BTreeMap::new()) };
    let text = |(key, value): (&String, &Value)| {
        let text = if value.is_null() { Some("") } else { value.as_str() };
        Ok((key.clone(), text.ok_or(Refused::Shape(path))?.to_owned()))
    };
    value.as_object().ok_or(Refused::Shape(path))?.iter().map(text).collect()
}
