//! The configuration as it is written: YAML with rules.

use api::{GROUP, VERSION};
use net::words::cut;
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};

use super::{BRIEF, LONGEST};

/// Most rules of one configuration.
const MOST_RULES: usize = 1000;

const KIND: &str = "ClusterGatewayProxyConfiguration";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    #[serde(default)]
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    client_identity_exchanger: Option<Exchanger>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchanger {
    #[serde(default)]
    rules: Option<Vec<Written>>,
}

/// A rule as the configuration has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) r#type: Option<String>,
    #[serde(default)]
    pub(super) source: Option<WrittenSource>,
    #[serde(default)]
    pub(super) target: Option<Target>,
    /// For external exchangers, which we do not support.
    #[serde(default, rename = "url")]
    _url: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct WrittenSource {
    #[serde(deserialize_with = "present")]
    pub(super) user: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) group: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) uid: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) cluster: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) user_pattern: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) group_pattern: Option<String>,
    #[serde(deserialize_with = "present")]
    pub(super) cluster_pattern: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Target {
    pub(super) user: String,
    pub(super) groups: Vec<String>,
    pub(super) uid: String,
}

pub(super) fn read(text: &str) -> Result<Vec<Written>, String> {
    if text.len() > LONGEST {
        return Err(format!("longer than {} KiB", LONGEST / 1024));
    }
    if text.trim().is_empty() {
        // The file may be in the middle of a write.
        return Err("empty: write `spec: {}` for no rules".to_owned());
    }
    let document: Document = serde_saphyr::from_str(text).map_err(|error| syntax(&error))?;
    let version = format!("{GROUP}/{VERSION}");
    if document.api_version.as_ref().is_some_and(|found| *found != version) {
        return Err(format!("apiVersion must be {version}"));
    }
    if document.kind.is_some_and(|kind| kind != KIND) {
        return Err(format!("kind must be {KIND}"));
    }
    let exchanger = document.spec.and_then(|spec| spec.client_identity_exchanger);
    let rules = exchanger.and_then(|exchanger| exchanger.rules).unwrap_or_default();
    if rules.len() > MOST_RULES {
        return Err(format!("more than {MOST_RULES} rules"));
    }
    Ok(rules)
}

/// The error in one line, without the text around the mistake.
fn syntax(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let line: Vec<_> = text.split_whitespace().collect();
    format!("not the expected YAML: {}", cut(&line.join(" "), BRIEF / 2))
}

/// Makes a key without a value a mistake, and not an absent condition.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(value)?;
    text.map(Some).ok_or_else(|| serde::de::Error::custom("a condition has no value: remove it, or write \"\""))
}
