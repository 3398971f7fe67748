//! Values of an object's status that are reported back.

mod written;

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::fields::{group_and_version, text, visible};
use crate::json_path::{Basic, JsonPath};

use self::written::json;

/// Which values to report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// The well-known values of its kind.
    WellKnown,
    Paths(Vec<Named>),
}

/// A path with a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub name: String,
    /// If not empty, the object must be of this version.
    pub version: String,
    /// Without braces.
    pub path: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Integer(i64),
    String(String),
    Boolean(bool),
    JsonRaw(String),
}

/// The values found, and why others were not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feedback {
    pub values: Vec<(String, Value)>,
    pub errors: Vec<String>,
}

/// Longest JSON that is reported, in bytes.
pub const RAW: usize = 1024;
/// Longest text that is reported, in bytes.
pub const TEXT: usize = 32 * 1024;
/// Most bytes of all names and values that are reported of an object.
pub const OBJECT: usize = 256 * 1024;
/// Most paths that are followed for one object; each rule of well-known values counts as one.
pub const PATHS: usize = 128;

const DEPLOYMENT: &[(&str, &str)] = &[
    ("ReadyReplicas", ".status.readyReplicas"),
    ("Replicas", ".status.replicas"),
    ("AvailableReplicas", ".status.availableReplicas"),
];
const DAEMON_SET: &[(&str, &str)] = &[
    ("NumberReady", ".status.numberReady"),
    ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
    ("NumberAvailable", ".status.numberAvailable"),
];
const JOB: &[(&str, &str)] =
    &[("JobComplete", r#".status.conditions[?(@.type=="Complete")].status"#), ("JobSucceeded", ".status.succeeded")];
const POD: &[(&str, &str)] =
    &[("PodReady", r#".status.conditions[?(@.type=="Ready")].status"#), ("PodPhase", ".status.phase")];

/// Follows `rules` through `object`. With `raw`, values other than an integer, text or boolean are
/// reported as JSON of at most that many bytes, and [`RAW`]; without, they are errors, and of
/// several values the first is reported. The data of a `Secret` is left out. A name is reported
/// once: the API accepts no second one, and would refuse the whole status.
pub fn read(object: &Json, rules: &[Rule], raw: Option<usize>) -> Feedback {
    let object = visible(object);
    let feedback = followed(&object, rules, raw);
    let (values, mut errors) = (feedback.values, feedback.errors);
    let (mut known, mut once) = (HashSet::new(), Vec::with_capacity(values.len()));
    for (name, value) in values {
        if known.insert(name.clone()) {
            once.push((name, value));
        } else {
            errors.push(format!("there is a value of the name {name} already"));
        }
    }
    Feedback { values: once, errors }
}

fn followed(object: &Json, rules: &[Rule], raw: Option<usize>) -> Feedback {
    let mut feedback = Feedback::default();
    let (mut paths, mut bytes) = (PATHS, OBJECT);
    let asked = rules.iter().flat_map(|rule| match rule {
        Rule::WellKnown => vec![None],
        Rule::Paths(asked) => asked.iter().map(Some).collect(),
    });
    for path in asked {
        let Some(rest) = paths.checked_sub(1) else {
            feedback.errors.push(format!("there are more than {PATHS} paths"));
            return feedback;
        };
        paths = rest;
        let before = feedback.values.len();
        match path {
            None => feedback.well_known(object, raw),
            Some(path) => feedback.named(object, path, raw),
        }
        let added = feedback.values.iter().skip(before).map(size).sum();
        let Some(rest) = bytes.checked_sub(added) else {
            feedback.values.truncate(before);
            feedback.errors.push(format!("the values of the object have more than {OBJECT} bytes"));
            return feedback;
        };
        bytes = rest;
    }
    feedback
}

/// Bytes of a value and its name.
fn size((name, value): &(String, Value)) -> usize {
    let value = match value {
        Value::Integer(_) | Value::Boolean(_) => 0,
        Value::String(text) | Value::JsonRaw(text) => text.len(),
    };
    name.len() + value
}

// === impl Feedback ===

impl Feedback {
    fn well_known(&mut self, object: &Json, raw: Option<usize>) {
        let (group, version) = group_and_version(text(object, "/apiVersion"));
        let kind = text(object, "/kind");
        let paths = match (group, version, kind) {
            ("apps", "v1", "Deployment") => DEPLOYMENT,
            ("apps", "v1", "DaemonSet") => DAEMON_SET,
            ("batch", "v1", "Job") => JOB,
            ("", "v1", "Pod") => POD,
            _ => {
                let kind = format!("{group}/{version}, Kind={kind}");
                self.errors.push(format!("cannot find the wellknown statuses for resource with gvk {kind}"));
                return;
            }
        };
        for (name, path) in paths {
            self.follow(object, name, path, raw);
        }
    }

    fn named(&mut self, object: &Json, path: &Named, raw: Option<usize>) {
        let version = group_and_version(text(object, "/apiVersion")).1;
        if !path.version.is_empty() && path.version != version {
            let name = &path.name;
            self.errors.push(format!("version set in the path {name} is not matched for the related resource"));
            return;
        }
        self.follow(object, &path.name, &path.path, raw);
    }

    fn follow(&mut self, object: &Json, name: &str, path: &str, raw: Option<usize>) {
        match value(object, name, path, raw) {
            Ok(Some(value)) => self.values.push((name.to_owned(), value)),
            Ok(None) => {}
            Err(why) => self.errors.push(why),
        }
    }
}

/// A missing or null value is no value, and no error.
fn value(object: &Json, name: &str, path: &str, raw: Option<usize>) -> Result<Option<Value>, String> {
    let read = JsonPath::read(path);
    let path = read.map_err(|why| format!("failed to parse json path {path} of {name} with error: {why}"))?;
    let found = path.find(object);
    let found = found.map_err(|why| format!("failed to find value for {name} with error: {why}"))?;
    let Some(first) = found.first() else { return Ok(None) };
    if let Some(most) = raw.filter(|_| found.len() > 1) {
        return json(&found, name, most).map(Some);
    }
    match (first.basic(), first.json()) {
        (Some(Basic::Bool(value)), _) => Ok(Some(Value::Boolean(value))),
        (Some(Basic::Text(text)), _) if text.len() > TEXT => {
            Err(format!("the value for {name} is longer than {TEXT} bytes"))
        }
        (Some(Basic::Text(text)), _) => Ok(Some(Value::String(text.to_owned()))),
        (Some(Basic::Int(value)), _) => Ok(Some(Value::Integer(value))),
        (None, None | Some(Json::Null)) => Ok(None),
        (_, found) => match raw {
            Some(most) => json(first, name, most).map(Some),
            None => Err(format!("the type {} of the value for {name} is not found", found.map_or("float64", type_of))),
        },
    }
}

/// Go's name of the type.
fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Object(_) => "map[string]interface {}",
        Json::Array(_) => "[]interface {}",
        _ => "float64",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(path: &str, raw: bool) -> Feedback {
        let object = json!({"apiVersion": "v1", "kind": "Pod", "status": {
            "n": 3, "s": "text", "b": true, "f": 1.5, "null": null, "html": ["<a>&"], "long": "x".repeat(RAW),
            "list": [1, 2], "map": {"a": 1}, "longer": ["x".repeat(RAW)], "huge": 18_446_744_073_709_551_615_u64}});
        let named = Named { name: "v".into(), version: String::new(), path: path.into() };
        read(&object, &[Rule::Paths(vec![named])], raw.then_some(RAW))
    }

    fn value(path: &str, raw: bool) -> Option<Value> {
        let told = told(path, raw);
        assert!(told.errors.is_empty(), "{told:?}");
        told.values.into_iter().next().map(|(_, value)| value)
    }

    #[test]
    fn values_have_types() {
        assert_eq!(value(".status.n", false), Some(Value::Integer(3)));
        assert_eq!(value(".status.s", false), Some(Value::String("text".into())));
        assert_eq!(value(".status.b", false), Some(Value::Boolean(true)));
        assert_eq!(value(".status.null", true), None);
        assert_eq!(value(".status.missing", false), None);
        assert_eq!(value(".status.list[*]", false), Some(Value::Integer(1)));
        assert_eq!(value(".status.list[*]", true), Some(Value::JsonRaw("[1,2]".into())));
        assert_eq!(value(".status.map", true), Some(Value::JsonRaw("{\"a\":1}".into())));
        assert_eq!(value(".status.f", true), Some(Value::JsonRaw("1.5".into())));
        assert_eq!(value(".status.html", true), Some(Value::JsonRaw("[\"\\u003ca\\u003e\\u0026\"]".into())));
        assert_eq!(value(".status.long", true), Some(Value::String("x".repeat(RAW))));
    }

    #[test]
    fn what_cannot_be_told_is_an_error() {
        for (path, raw, why) in [
            (".status.map", false, "the type map[string]interface {} of the value for v is not found"),
            (".status.f", false, "the type float64 of the value for v is not found"),
            (".status.huge", false, "the type float64 of the value for v is not found"),
            (".status.longer", true, "the length of returned json raw string for name v is larger than the maximum"),
            (".status[", false, "failed to parse json path .status[ of v with error: unterminated array"),
            (".status.list[7]", false, "failed to find value for v with error: array index out of bounds"),
        ] {
            let told = told(path, raw);
            assert!(told.values.is_empty() && told.errors.len() == 1 && told.errors[0].starts_with(why), "{told:?}");
        }
    }

    #[test]
    fn a_name_is_told_once() {
        let named = |path: &str| Named { name: "v".into(), version: String::new(), path: path.into() };
        let told = read(&json!({"a": 1, "b": 2}), &[Rule::Paths(vec![named(".a"), named(".b")])], None);
        assert_eq!(told.values, [("v".to_owned(), Value::Integer(1))]);
        assert_eq!(told.errors, ["there is a value of the name v already"]);
    }

    #[test]
    fn secrets_are_not_told() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "n"}, "data": {"a": "b"}});
        let named = |name: &str, path: &str| Named { name: name.into(), version: String::new(), path: path.into() };
        let paths = vec![named("data", ".data.a"), named("all", "..a"), named("name", ".metadata.name")];
        let told = read(&secret, &[Rule::Paths(paths)], Some(RAW));
        assert_eq!(told.values, [("name".to_owned(), Value::String("n".into()))]);
    }

    #[test]
    fn so_many_paths_are_followed() {
        let named = |at| Named { name: format!("v{at}"), version: "v1".into(), path: ".a".into() };
        let object = json!({"apiVersion": "v1", "a": 1});
        let rules = |count| [Rule::Paths((0..count).map(named).collect())];
        let told = read(&object, &rules(PATHS + 5), None);
        assert_eq!((told.values.len(), told.errors.len()), (PATHS, 1));
        let text = json!({"apiVersion": "v1", "a": "x".repeat(TEXT)});
        let told = read(&text, &rules(PATHS), None);
        assert_eq!((told.values.len(), told.errors.len()), (OBJECT / TEXT - 1, 1));
        let told = read(&object, &vec![Rule::WellKnown; PATHS + 5], None);
        assert_eq!(told.errors.len(), PATHS + 1);
    }
}
