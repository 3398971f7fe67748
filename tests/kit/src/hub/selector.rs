//! Label and field selectors, as far as a gateway's list and watch calls use them.

use serde_json::Value;

/// A parsed label selector (`kubectl get -l` syntax): all requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    Exists(String),
    Missing(String),
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
}

/// A parsed field selector: `metadata.name` and `metadata.namespace`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSelector {
    pub(super) name: Option<String>,
    namespace: Option<String>,
    other_names: Vec<String>,
}

// === impl LabelSelector ===

impl LabelSelector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        split_outside_parentheses(text)
            .filter(|part| !part.is_empty())
            .map(Requirement::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.matches(&object["metadata"]["labels"]))
    }
}

/// Splits at commas that are not between parentheses, and trims.
fn split_outside_parentheses(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .map(str::trim)
}

// === impl Requirement ===

impl Requirement {
    fn parse(text: &str) -> Result<Self, String> {
        let owned = |text: &str| text.trim().to_owned();
        if let Some(key) = text.strip_prefix('!') {
            return Ok(Self::Missing(owned(key)));
        }
        for (operator, negated) in [("!=", true), ("==", false), ("=", false)] {
            if let Some((key, value)) = text.split_once(operator) {
                let (key, values) = (owned(key), vec![owned(value)]);
                return Ok(if negated { Self::NotIn(key, values) } else { Self::In(key, values) });
            }
        }
        if let Some((before, list)) = text.split_once('(') {
            let list = list.strip_suffix(')').ok_or_else(|| format!("unbalanced parentheses: {text}"))?;
            let values = list.split(',').map(owned).collect();
            return match before.split_whitespace().collect::<Vec<_>>().as_slice() {
                [key, "in"] => Ok(Self::In(owned(key), values)),
                [key, "notin"] => Ok(Self::NotIn(owned(key), values)),
                _ => Err(format!("unknown operator: {text}")),
            };
        }
        if text.contains(char::is_whitespace) {
            return Err(format!("not a requirement: {text}"));
        }
        Ok(Self::Exists(owned(text)))
    }

    fn matches(&self, labels: &Value) -> bool {
        let label = |key: &str| labels.get(key).and_then(Value::as_str);
        match self {
            Self::Exists(key) => label(key).is_some(),
            Self::Missing(key) => label(key).is_none(),
            Self::In(key, values) => label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value)),
            Self::NotIn(key, values) => !label(key).is_some_and(|value| values.iter().any(|wanted| wanted == value)),
        }
    }
}

// === impl FieldSelector ===

impl FieldSelector {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut selector = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            if let Some(name) = part.strip_prefix("metadata.name!=") {
                selector.other_names.push(name.to_owned());
                continue;
            }
            let (field, value) = part.split_once('=').ok_or_else(|| format!("not a requirement: {part}"))?;
            let value = Some(value.trim_start_matches('=').to_owned());
            match field {
                "metadata.name" => selector.name = value,
                "metadata.namespace" => selector.namespace = value,
                _ => return Err(format!("field label not supported: {field}")),
            }
        }
        Ok(selector)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let holds = |wanted: &Option<String>, field: &str| {
            wanted.as_deref().is_none_or(|wanted| object["metadata"][field].as_str().unwrap_or_default() == wanted)
        };
        let other = |name: &String| object["metadata"]["name"].as_str() != Some(name);
        self.other_names.iter().all(other) && holds(&self.name, "name") && holds(&self.namespace, "namespace")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str) -> bool {
        let object = json!({"metadata": {"labels": {"type": "X509", "tier": "a"}}});
        LabelSelector::parse(selector).expect("a selector").matches(&object)
    }

    #[test]
    fn every_form_of_a_label_requirement_selects() {
        for yes in [
            "",
            "type",
            "!other",
            "type=X509",
            "type==X509,tier",
            "type!=Token",
            "tier in (a, b),type",
            "tier notin (c)",
        ] {
            assert!(matches(yes), "{yes}");
        }
        for no in ["other", "!type", "type=Token", "type,tier=b", "type!=X509", "tier in (c,d)", "tier notin (a,b)"] {
            assert!(!matches(no), "{no}");
        }
        for broken in ["tier in (a", "tier within (a)", "two words"] {
            assert!(LabelSelector::parse(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn fields_select_by_name_and_namespace_only() {
        let object = json!({"metadata": {"name": "n", "namespace": "s"}});
        let matches = |text: &str| FieldSelector::parse(text).map(|selector| selector.matches(&object));
        assert_eq!(matches("metadata.name=n,metadata.namespace==s"), Ok(true));
        assert_eq!(matches("metadata.name=other"), Ok(false));
        assert_eq!((matches("metadata.name!=n"), matches("metadata.name!=other")), (Ok(false), Ok(true)));
        assert!(matches("status.phase=Running").is_err());
    }
}
