//! `fieldSelector`, with the grammar of `k8s.io/apimachinery/pkg/fields/selector.go`.

mod requirement;

use self::requirement::Requirement;

/// A parsed field selector: all requirements must hold. The default matches every object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// In the order in which Kubernetes evaluates them: sorted by their text.
    requirements: Vec<Requirement>,
}

/// The text is not a valid field selector (a 400, and the client sees its `message`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unable to parse the field selector: write FIELD=VALUE, FIELD==VALUE or FIELD!=VALUE, separated by commas")]
pub struct InvalidFieldSelector;

// === impl FieldSelector ===

impl FieldSelector {
    pub fn parse(text: &str) -> Result<Self, InvalidFieldSelector> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let requirements = terms.into_iter().filter(|term| !term.is_empty()).map(Requirement::parse);
        Ok(Self { requirements: requirements.collect::<Result<_, _>>()? })
    }

    /// The value that the selector requires of `field`, if it does (`Selector.RequiresExactMatch`).
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.requirements.iter().find(|one| one.equal && one.field == field).map(|one| one.value.as_str())
    }

    /// Names of all fields in the selector.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.requirements.iter().map(|one| one.field.as_str())
    }

    /// The selector's terms about `field`, as a selector.
    pub fn only(&self, field: &str) -> String {
        let terms = self.requirements.iter().filter(|one| one.field == field).map(|one| {
            let escaped = one.value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=");
            format!("{field}{}{escaped}", if one.equal { "=" } else { "!=" })
        });
        terms.collect::<Vec<_>>().join(",")
    }

    /// Whether an object with these fields matches. A missing field counts as empty.
    pub fn matches<'a>(&self, value: impl Fn(&str) -> &'a str) -> bool {
        self.requirements.iter().all(|one| (value(&one.field) == one.value) == one.equal)
    }
}

/// Splits at unescaped commas.
fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(text: &str) -> Option<String> {
        FieldSelector::parse(text).ok()?.exact("metadata.name").map(str::to_owned)
    }

    #[test]
    fn exact_match_as_kubernetes_reads_it() {
        for (text, name) in [
            ("metadata.name=c1", Some("c1")),
            ("metadata.name==c1", Some("c1")),
            ("metadata.name=c1,spec.x=1", Some("c1")),
            ("metadata.name=b,metadata.name=a", Some("a")),
            ("metadata.name=a\\,b", Some("a,b")),
            ("metadata.name!=c1", None),
            ("spec.x=metadata.name", None),
            ("metadata.name", None),
            ("metadata.name=a=b", None),
            ("metadata.name=a\\", None),
            ("metadata.name=c1,nonsense", None),
            ("", None),
        ] {
            assert_eq!(exact(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn matches_all_requirements() {
        let selector = FieldSelector::parse("metadata.name!=a,metadata.namespace=").expect("valid");
        let object = |name: &'static str| move |field: &str| if field == "metadata.name" { name } else { "" };
        assert!(selector.matches(object("b")));
        assert!(!selector.matches(object("a")));
        assert!(FieldSelector::default().matches(object("a")));
    }

    proptest! {
        #[test]
        fn never_panics_and_finds_what_was_escaped(noise in ".*", value in "[a-z,=\\\\]{0,8}") {
            let _ = FieldSelector::parse(&noise);
            let escaped: String = value.chars().flat_map(|c| (!c.is_ascii_lowercase()).then_some('\\').into_iter().chain([c])).collect();
            let text = format!("metadata.name={escaped}");
            let again = FieldSelector::parse(&text).map(|selector| selector.only("metadata.name"));
            prop_assert_eq!(exact(&again.expect("valid")), Some(value));
        }
    }
}
