//! Label and field selectors, parsed from the query and matched against objects.
//!
//! Labels follow `k8s.io/apimachinery/pkg/labels` (`a=b`, `a==b`, `a!=b`, `a`, `!a`, `a in (b,c)`,
//! `a notin (b,c)`); fields follow `pkg/fields` (`=`, `==`, `!=`) and only know the labels that the kind
//! declares, as the real server does.

use super::{kind::Kind, object::Object};

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selection {
    /// The resource type.
    pub(crate) kind: Kind,
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    labels: Vec<Requirement>,
    fields: Vec<FieldRequirement>,
}

/// Why a selector was refused; the texts are shown to the user with status 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SelectorError {
    /// The text does not follow the grammar.
    #[error("unable to parse requirement: {0:?}")]
    Syntax(String),
    /// A field that this kind cannot be selected by.
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

// === impl Selection ===

impl Selection {
    /// Every object of a kind, in one namespace or in all.
    pub(crate) fn all(kind: Kind, namespace: Option<String>) -> Self {
        Self { kind, namespace, labels: Vec::new(), fields: Vec::new() }
    }

    /// Narrows the selection by the `labelSelector` and `fieldSelector` of a query; empty texts select all.
    pub(crate) fn narrow(mut self, labels: &str, fields: &str) -> Result<Self, SelectorError> {
        self.labels = split_outside_parentheses(labels).map(Requirement::parse).collect::<Result<_, _>>()?;
        self.fields = fields
            .split(',')
            .filter(|term| !term.trim().is_empty())
            .map(|term| FieldRequirement::parse(self.kind, term))
            .collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// Whether the object belongs to the selection.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        object.key.kind == self.kind
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == object.key.namespace)
            && self.labels.iter().all(|r| r.holds(object))
            && self.fields.iter().all(|r| r.holds(object))
    }
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
            let values = values.split(',').map(|v| v.trim().to_owned()).collect();
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

    fn holds(&self, object: &Object) -> bool {
        let value = object.label(&self.key);
        let is_one_of = |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => is_one_of(values),
            // An absent label satisfies `!=` and `notin` (labels.Requirement.Matches).
            Test::NotIn(values) => !is_one_of(values),
        }
    }
}

// === impl FieldRequirement ===

impl FieldRequirement {
    fn parse(kind: Kind, term: &str) -> Result<Self, SelectorError> {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once('=') {
            (path, value.strip_prefix('=').unwrap_or(value), true)
        } else {
            return Err(SelectorError::Syntax(term.to_owned()));
        };
        let path = path.trim();
        if !kind.selects(path) {
            return Err(SelectorError::UnknownField(path.to_owned()));
        }
        Ok(Self { path: path.to_owned(), value: value.trim().to_owned(), equal })
    }

    fn holds(&self, object: &Object) -> bool {
        (object.field(&self.path) == self.value) == self.equal
    }
}

fn is_label_key(key: &str) -> bool {
    let (prefix, name) = key.rsplit_once('/').unwrap_or(("x", key));
    !prefix.is_empty() && !name.is_empty() && is_label_value(prefix) && is_label_value(name)
}

fn is_label_value(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
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
    .filter(move |term| !text.trim().is_empty() && !term.is_empty())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{super::object::Key, *};

    fn web() -> Object {
        Object {
            key: Key::new(Kind::Pod, "shop", "web-1"),
            body: json!({
                "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web", "example.com/tier": "front"}},
                "spec": {"nodeName": "n1"},
                "status": {"phase": "Running"},
            }),
        }
    }

    fn selected(labels: &str, fields: &str) -> bool {
        Selection::all(Kind::Pod, None).narrow(labels, fields).unwrap().matches(&web())
    }

    #[test]
    fn labels() {
        for hit in [
            "",
            "app",
            "app=web",
            "app==web",
            "app=web,example.com/tier=front",
            "!job",
            "job!=x",
            "app in (api, web)",
            "app notin (api,db),example.com/tier",
        ] {
            assert!(selected(hit, ""), "{hit}");
        }
        for miss in ["job", "!app", "app=api", "app!=web", "app in (api)", "app=web,job", "app notin (web)"] {
            assert!(!selected(miss, ""), "{miss}");
        }
    }

    #[test]
    fn fields() {
        assert!(selected("", "metadata.name=web-1,metadata.namespace==shop,spec.nodeName=n1"));
        assert!(selected("", "status.phase!=Failed,status.phase!=Succeeded"));
        assert!(!selected("", "status.phase=Pending"));
        assert!(selected("", "status.podIP="), "absent reads as empty");
    }

    #[test]
    fn refusals_name_the_term() {
        let narrow = |labels, fields| Selection::all(Kind::Pod, None).narrow(labels, fields).unwrap_err();
        assert_eq!(narrow("app in (a", ""), SelectorError::Syntax("app in (a".into()));
        assert_eq!(narrow("", "spec.color=red"), SelectorError::UnknownField("spec.color".into()));
        assert!(narrow("", "metadata.name").to_string().contains("metadata.name"));
        for bad in ["=web", "app=we b", "a b", "app in", "app within (a)", "!"] {
            assert!(matches!(narrow(bad, ""), SelectorError::Syntax(_)), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_parsed(labels in ".{0,60}", fields in ".{0,60}") {
            if let Ok(selection) = Selection::all(Kind::Pod, None).narrow(&labels, &fields) {
                selection.matches(&web());
            }
        }

        #[test]
        fn a_requirement_and_its_negation_never_agree(value in "[a-z]{1,3}") {
            prop_assert_ne!(selected(&format!("app={value}"), ""), selected(&format!("app!={value}"), ""));
        }
    }
}
