//! Fields that a member's controllers may set: they are left out of what is applied, or applied
//! only when something else changes.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::jq::{self, JqError};
use crate::json_path::{self, Found, JsonPath};

/// Fields, and when they are ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignore {
    pub when: When,
    /// `JSONPath`: `.spec.replicas`.
    pub paths: Vec<String>,
    /// JSON pointers (RFC 6901): `/spec/replicas`.
    pub pointers: Vec<String>,
    /// Paths in jq: `.spec.containers[] | select(.name == "proxy")`.
    pub jq: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once the object exists.
    Present,
    /// As long as the manifest does not change.
    Changed,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IgnoreError {
    #[error("JSONPath error in '{path}': {why}")]
    Path { path: String, why: json_path::Error },
    #[error("JSON Pointer error in '{0}': it does not begin with a slash, or has a ~ that is neither ~0 nor ~1")]
    Pointer(String),
    #[error("JQ expression error in '{expression}': {why}")]
    Jq { expression: String, why: JqError },
    #[error("ignoreFields remove apiVersion, kind or metadata.name")]
    Identity,
    #[error("ignoreFields have more than {SELECTORS} paths")]
    TooMany,
}

/// Most paths of all kinds for an object, because each visits many values.
pub const SELECTORS: usize = 64;
/// Most characters of a path that an error shows.
const LONGEST_QUOTE: usize = 200;

/// Removes the fields from `object` that are left out of what is applied.
pub fn without(object: &mut Json, ignore: &Ignore) -> Result<(), IgnoreError> {
    for path in &ignore.paths {
        // Parsed in any case: a faulty path is reported whatever `when` is.
        let wrong = |why| IgnoreError::Path { path: shortened(path), why };
        let (parent, key) = parted(path).map_err(wrong)?;
        if ignore.when == When::Present {
            remove_found(object, &parent, key).map_err(wrong)?;
        }
    }
    for pointer in &ignore.pointers {
        let tokens = tokens(pointer).ok_or_else(|| IgnoreError::Pointer(shortened(pointer)))?;
        if ignore.when == When::Present {
            remove_at(object, &tokens);
        }
    }
    for expression in &ignore.jq {
        let done = if ignore.when == When::Present { jq::delete(object, expression) } else { jq::check(expression) };
        done.map_err(|why| IgnoreError::Jq { expression: shortened(expression), why })?;
    }
    Ok(())
}

fn shortened(path: &str) -> String {
    path.chars().take(LONGEST_QUOTE).collect()
}

/// The path of the maps, and the key that is removed from each: all after the last dot, as
/// upstream.
fn parted(path: &str) -> Result<(JsonPath, &str), json_path::Error> {
    let Some((parent, key)) = path.rsplit_once('.') else {
        return Err(json_path::Error::Syntax("it has no dot".to_owned()));
    };
    JsonPath::read(path)?;
    Ok((JsonPath::read(parent)?, key))
}

fn remove_found(object: &mut Json, parent: &JsonPath, key: &str) -> Result<(), json_path::Error> {
    // Finds the maps first: nothing can be changed while the path borrows it.
    let found: HashSet<*const Json> = match parent.find(object) {
        Ok(found) => found.iter().filter_map(Found::json).map(std::ptr::from_ref).collect(),
        Err(json_path::Error::TooMuch) => return Err(json_path::Error::TooMuch),
        // It leads nowhere in this object.
        Err(_) => return Ok(()),
    };
    if !found.is_empty() {
        remove_in(object, &found, key);
    }
    Ok(())
}

/// Removes `key` from the maps at the addresses in `found`. Innermost first: removing an entry from
/// a map moves its other entries.
fn remove_in(value: &mut Json, found: &HashSet<*const Json>, key: &str) {
    let is_found = found.contains(&std::ptr::from_ref(value));
    match value {
        Json::Object(entries) => {
            entries.values_mut().for_each(|value| remove_in(value, found, key));
            if is_found {
                entries.remove(key);
            }
        }
        Json::Array(values) => values.iter_mut().for_each(|value| remove_in(value, found, key)),
        _ => {}
    }
}

fn tokens(pointer: &str) -> Option<Vec<String>> {
    let rest = pointer.strip_prefix('/')?;
    rest.split('/').map(unescaped).collect()
}

fn unescaped(token: &str) -> Option<String> {
    let mut parts = token.split('~');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (c, rest) =
            if let Some(rest) = part.strip_prefix('0') { ('~', rest) } else { ('/', part.strip_prefix('1')?) };
        out.push(c);
        out.push_str(rest);
    }
    Some(out)
}

/// A missing field needs no removal.
fn remove_at(object: &mut Json, tokens: &[String]) {
    let Some((last, parents)) = tokens.split_last() else { return };
    let parent = parents.iter().try_fold(object, |value, token| match value {
        Json::Object(entries) => entries.get_mut(token),
        Json::Array(values) => values.get_mut(token.parse::<usize>().ok()?),
        _ => None,
    });
    match parent {
        Some(Json::Object(entries)) => drop(entries.remove(last)),
        Some(Json::Array(values)) => {
            if let Some(at) = last.parse::<usize>().ok().filter(|at| *at < values.len()) {
                values.remove(at);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ignore(paths: &[&str], pointers: &[&str], jq: &[&str]) -> Ignore {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        Ignore { when: When::Present, paths: owned(paths), pointers: owned(pointers), jq: owned(jq) }
    }

    fn object() -> Json {
        json!({"spec": {"replicas": 1, "a/b": 2, "c~d": 3, "containers": [{"name": "x", "image": "1"}, {"name": "y", "image": "2"}]}})
    }

    fn left(ignore: &Ignore) -> Result<Json, IgnoreError> {
        let mut object = object();
        without(&mut object, ignore).map(|()| object)
    }

    #[test]
    fn fields_go_by_path_and_by_pointer() {
        let mut wanted = object();
        wanted["spec"].as_object_mut().unwrap().remove("replicas");
        assert_eq!(left(&ignore(&[".spec.replicas"], &[], &[])), Ok(wanted.clone()));
        assert_eq!(left(&ignore(&[], &["/spec/replicas"], &[])), Ok(wanted));
        let images = left(&ignore(&[".spec.containers[*].image"], &[], &[])).unwrap();
        assert_eq!(images["spec"]["containers"], json!([{"name": "x"}, {"name": "y"}]));
        let one =
            left(&ignore(&[".spec.containers[?(@.name==\"y\")].image"], &["/spec/a~1b", "/spec/c~0d"], &[])).unwrap();
        assert_eq!(one["spec"]["containers"], json!([{"name": "x", "image": "1"}, {"name": "y"}]));
        assert!(one["spec"].get("a/b").is_none() && one["spec"].get("c~d").is_none());
        let item = left(&ignore(&[], &["/spec/containers/0", "/spec/containers/7", "/no/where"], &[])).unwrap();
        assert_eq!(item["spec"]["containers"], json!([{"name": "y", "image": "2"}]));
        assert_eq!(
            left(&ignore(&[".spec.missing.deeper", ".spec.replicas.x", ".spec.containers[9].image"], &[], &[])),
            Ok(object())
        );
    }

    #[test]
    fn what_jq_selects_goes() {
        let one = left(&ignore(&[], &[], &[".spec.containers[] | select(.name == \"x\")", ".spec.replicas"])).unwrap();
        assert_eq!(one["spec"]["containers"], json!([{"name": "y", "image": "2"}]));
        assert!(one["spec"].get("replicas").is_none());
    }

    #[test]
    fn a_field_goes_at_every_depth() {
        let mut object = json!({"a": {"x": 1, "b": {"x": 2, "a": {"x": 3, "y": 4}}, "z": {"x": 5}}});
        without(&mut object, &ignore(&["..a.x", ".a.z.x"], &[], &[])).unwrap();
        assert_eq!(object, json!({"a": {"b": {"x": 2, "a": {"y": 4}}, "z": {}}}));
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        for (wrong, told) in [
            (ignore(&["spec.replicas"], &[], &[]), "JSONPath error in 'spec.replicas': unrecognized identifier spec"),
            (ignore(&[".spec[.x"], &[], &[]), "JSONPath error in '.spec[.x': unterminated array"),
            (ignore(&["replicas"], &[], &[]), "JSONPath error in 'replicas': it has no dot"),
            (ignore(&[], &["spec"], &[]), "JSON Pointer error in 'spec'"),
            (ignore(&[], &["/spec/~2"], &[]), "JSON Pointer error in '/spec/~2'"),
            (ignore(&[], &[], &["repeat(.)"]), "JQ expression error in 'repeat(.)': failed to parse"),
        ] {
            let error = left(&wrong).unwrap_err().to_string();
            assert!(error.starts_with(told), "{error}");
        }
    }

    #[test]
    fn fields_that_are_ignored_as_long_as_nothing_changes_stay() {
        let kept = Ignore { when: When::Changed, ..ignore(&[".spec.replicas"], &["/spec/replicas"], &[]) };
        assert_eq!(left(&kept), Ok(object()));
        let broken = Ignore { when: When::Changed, ..ignore(&["spec"], &[], &[]) };
        assert!(left(&broken).is_err());
    }
}
