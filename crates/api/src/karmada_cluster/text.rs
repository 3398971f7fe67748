//! JSON kept as it was sent: as values in memory, a few bytes of it may take up many.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// A field's JSON, if it has one.
#[derive(Debug, Clone, Default)]
pub struct Text(Option<Box<RawValue>>);

/// The fields of a `status` that we read.
#[derive(Default)]
pub(super) struct Outline {
    pub(super) version: String,
    /// `status` of the condition `Ready`.
    pub(super) ready: Option<String>,
}

// === impl Text ===

impl Text {
    pub fn is_none(&self) -> bool {
        self.0.is_none()
    }

    pub fn get(&self) -> Option<&str> {
        self.0.as_deref().map(RawValue::get)
    }

    /// For `deserialize_with`: an object or null.
    pub(super) fn object<'de, D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Self::beginning(reader, '{', "an object")
    }

    /// For `deserialize_with`: an array or null.
    pub(super) fn array<'de, D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Self::beginning(reader, '[', "an array")
    }

    fn beginning<'de, D: Deserializer<'de>>(reader: D, with: char, what: &str) -> Result<Self, D::Error> {
        let text: Option<Box<RawValue>> = Option::deserialize(reader)?;
        match &text {
            Some(text) if !text.get().starts_with(with) => Err(D::Error::custom(format_args!("expected {what}"))),
            Some(text) if inner(text.get()).is_some_and(str::is_empty) => Ok(Self(None)),
            _ => Ok(Self(text)),
        }
    }

    /// Reads it as a `status`.
    pub(super) fn outline(&self) -> Outline {
        let fields = self.fields();
        let version = fields.get("kubernetesVersion").and_then(|text| serde_json::from_str(text.get()).ok());
        let ready = fields.get("conditions").and_then(|text| ready(text).ok()).flatten();
        Outline { version: version.unwrap_or_default(), ready }
    }

    /// Adds a condition, if the status has a list of conditions or none at all.
    #[must_use]
    pub(super) fn with_condition(&self, condition: &str) -> Self {
        let mut fields = self.fields();
        let had = fields.get("conditions").map(|text| text.get());
        let before = match had {
            None => "",
            Some(text) if text.starts_with('[') => inner(text).unwrap_or_default(),
            Some(_) => return self.clone(),
        };
        let comma = if before.is_empty() { "" } else { "," };
        let Ok(conditions) = RawValue::from_string(format!("[{before}{comma}{condition}]")) else {
            return self.clone();
        };
        fields.insert("conditions".to_owned(), &conditions);
        Self(serde_json::value::to_raw_value(&fields).ok())
    }

    fn fields(&self) -> BTreeMap<String, &RawValue> {
        self.get().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Text {}

impl Serialize for Text {
    /// `None` becomes an empty object.
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(text) => text.serialize(writer),
            None => BTreeMap::<(), ()>::new().serialize(writer),
        }
    }
}

/// The text between the brackets or braces of `text`.
fn inner(text: &str) -> Option<&str> {
    text.get(1..text.len().checked_sub(1)?).map(str::trim_ascii)
}

/// The `status` of the condition `Ready`. Reads the conditions one by one.
fn ready(conditions: &RawValue) -> Result<Option<String>, serde_json::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Condition {
        r#type: String,
        status: String,
    }
    struct Ready;
    impl<'de> Visitor<'de> for Ready {
        type Value = Option<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("conditions")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut conditions: A) -> Result<Option<String>, A::Error> {
            let mut found = None;
            while let Some(text) = conditions.next_element::<&'de RawValue>()? {
                // Another condition that cannot be read does not affect this one.
                let condition: Condition = serde_json::from_str(text.get()).unwrap_or_default();
                if found.is_none() && condition.r#type == "Ready" {
                    found = Some(condition.status);
                }
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(conditions.get()).deserialize_seq(Ready)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(json: &str) -> Text {
        Text::object(&mut serde_json::Deserializer::from_str(json)).expect("an object")
    }

    #[test]
    fn a_condition_is_added_to_what_was_written() {
        let with = |json: &str| serde_json::to_string(&status(json).with_condition("{}")).expect("JSON");
        assert_eq!(with("null"), r#"{"conditions":[{}]}"#);
        assert_eq!(with(r#"{"a":1e300,"conditions":[ ]}"#), r#"{"a":1e300,"conditions":[{}]}"#);
        assert_eq!(with(r#"{"conditions":[1],"a":[{ }]}"#), r#"{"a":[{ }],"conditions":[1,{}]}"#);
        assert_eq!(with(r#"{"conditions":"x"}"#), r#"{"conditions":"x"}"#);
    }

    #[test]
    fn what_is_looked_at_is_found_among_the_rest() {
        let outline = |json: &str| {
            let Outline { version, ready } = status(json).outline();
            (version, ready)
        };
        let json =
            r#"{"kubernetesVersion":"v1","conditions":[7,{"type":"x"},{"type":"Ready","status":"True","n":null}]}"#;
        assert_eq!(outline(json), ("v1".to_owned(), Some("True".to_owned())));
        assert_eq!(outline(r#"{"kubernetesVersion":1,"conditions":{}}"#), (String::new(), None));
        assert_eq!(outline("null"), (String::new(), None));
    }

    #[test]
    fn another_shape_is_refused() {
        assert!(Text::object(&mut serde_json::Deserializer::from_str("[]")).is_err());
        assert!(Text::array(&mut serde_json::Deserializer::from_str("{}")).is_err());
        assert!(Text::array(&mut serde_json::Deserializer::from_str("[ ]")).expect("an array").is_none());
    }
}
