//! Label and field selectors, as an API server reads them from the query of a list or a watch.
//!
//! Labels follow `k8s.io/apimachinery/pkg/labels` (`a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`,
//! `a notin (b,c)`); fields follow `pkg/fields` (`=`, `==`, `!=`) and only know the labels that a
//! resource declares. Scripted servers have this parser of their own, because tests check the
//! product's against them.

use serde_json::Value;

/// Fields that every resource can be selected by.
const METADATA: [&str; 2] = ["metadata.name", "metadata.namespace"];

/// A parsed label selector: all requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<Requirement>);

/// A parsed field selector: all requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<FieldRequirement>);

/// Why a selector was refused; the text is the message of a 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// The text does not follow the grammar.
    #[error("unable to parse requirement: {0:?}")]
    Syntax(String),
    /// A field that this resource cannot be selected by.
    #[error("field label not supported: {0}")]
    UnknownField(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    In(Vec<String>),
    NotIn(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

// === impl LabelSelector ===

impl LabelSelector {
    /// Parses the value of `labelSelector`; empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        split_outside_parentheses(text).map(Requirement::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the object has such labels.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.holds(&object["metadata"]["labels"]))
    }
}

/// Splits at the commas that are not inside a value set; empty text gives no term.
fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_u32;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
    .filter(|term| !term.trim().is_empty())
}

// === impl Requirement ===

impl Requirement {
    fn parse(term: &str) -> Result<Self, SelectorError> {
        let bad = || SelectorError::Syntax(term.to_owned());
        let term = term.trim();
        let (key, test) = if let Some(key) = term.strip_prefix('!') {
            (key, Test::Missing)
        } else if let Some((key, value)) = term.split_once("!=") {
            (key, Test::NotIn(vec![value.trim().to_owned()]))
        } else if let Some((key, value)) = term.split_once('=') {
            let value = value.strip_prefix('=').unwrap_or(value);
            (key, Test::In(vec![value.trim().to_owned()]))
        } else if let Some((head, values)) = term.split_once('(') {
            let values = values.strip_suffix(')').ok_or_else(bad)?;
            let values = values.split(',').map(|value| value.trim().to_owned()).collect();
            match head.trim().rsplit_once(char::is_whitespace) {
                Some((key, "in")) => (key, Test::In(values)),
                Some((key, "notin")) => (key, Test::NotIn(values)),
                _ => return Err(bad()),
            }
        } else {
            (term, Test::Exists)
        };
        let key = key.trim();
        let values = match &test {
            Test::In(values) | Test::NotIn(values) => values.as_slice(),
            Test::Exists | Test::Missing => &[],
        };
        if !is_label_key(key) || !values.iter().all(|value| is_label_value(value)) {
            return Err(bad());
        }
        Ok(Self { key: key.to_owned(), test })
    }

    fn holds(&self, labels: &Value) -> bool {
        let value = labels.get(&self.key).and_then(Value::as_str);
        let is_one_of = |values: &[String]| value.is_some_and(|value| values.iter().any(|wanted| wanted == value));
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => is_one_of(values),
            // An absent label satisfies `!=` and `notin` (labels.Requirement.Matches).
            Test::NotIn(values) => !is_one_of(values),
        }
    }
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("x", key));
    !prefix.is_empty() && !name.is_empty() && is_label_value(prefix) && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

// === impl FieldSelector ===

impl FieldSelector {
    /// Parses the value of `fieldSelector`, which may name `metadata.name`, `metadata.namespace`
    /// and `fields`; empty text selects everything.
    pub fn parse(text: &str, fields: &[impl AsRef<str>]) -> Result<Self, SelectorError> {
        let known = |path: &str| METADATA.contains(&path) || fields.iter().any(|field| field.as_ref() == path);
        let terms = text.split(',').filter(|term| !term.trim().is_empty());
        terms.map(|term| FieldRequirement::parse(term, known)).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the object's fields are so; one that is absent reads as empty.
    pub fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.holds(object))
    }

    /// The value that `path` has to have, if it has to have one.
    pub fn required(&self, path: &str) -> Option<&str> {
        let requirement = self.0.iter().find(|requirement| requirement.equal && requirement.path == path);
        requirement.map(|requirement| requirement.value.as_str())
    }
}

// === impl FieldRequirement ===

impl FieldRequirement {
    fn parse(term: &str, known: impl Fn(&str) -> bool) -> Result<Self, SelectorError> {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once('=') {
            (path, value.strip_prefix('=').unwrap_or(value), true)
        } else {
            return Err(SelectorError::Syntax(term.to_owned()));
        };
        let path = path.trim();
        if !known(path) {
            return Err(SelectorError::UnknownField(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), value: value.trim().to_owned(), equal })
    }

    fn holds(&self, object: &Value) -> bool {
        let value = self.path.split('.').fold(object, |value, key| &value[key]);
        (value.as_str().unwrap_or_default() == self.value) == self.equal
    }
}

#[cfg(test)]
mod tests;
