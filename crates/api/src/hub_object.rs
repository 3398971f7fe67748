//! The hub's objects in JSON, limited to the fields that we read.
//!
//! Fields that Go writes as null or omits are empty. The error of a value that cannot be read does
//! not repeat the value, because these objects hold credentials.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};

use crate::secret::SecretView;

/// `metav1.ObjectMeta`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HubMeta {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    /// RFC 3339.
    pub creation_timestamp: Option<String>,
    #[serde(deserialize_with = "or_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "or_empty")]
    pub annotations: BTreeMap<String, String>,
    /// There are more labels than are kept of such an object: `labels` is empty.
    #[serde(skip)]
    pub labels_are_cut: bool,
}

/// A `v1 Secret`. Not `Debug`: it holds credentials.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct SecretObject {
    pub metadata: HubMeta,
    #[serde(deserialize_with = "decoded")]
    data: BTreeMap<String, Vec<u8>>,
}

/// `metav1.ListMeta`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HubListMeta {
    pub resource_version: String,
    #[serde(rename = "continue")]
    pub next: Option<String>,
    pub remaining_item_count: Option<i64>,
}

/// A list of objects of any kind.
#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub struct HubList<T> {
    #[serde(default)]
    pub metadata: HubListMeta,
    #[serde(default, deserialize_with = "or_empty")]
    pub items: Vec<T>,
}

/// The hub's JSON is not what was asked for. Has no detail, because it may hold credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hub's JSON cannot be read")]
pub struct Unreadable;

/// Parses an object or a list of the hub.
pub fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, Unreadable> {
    serde_json::from_slice(json).map_err(|_| Unreadable)
}

/// Go writes null for a map or slice that was never made.
pub(crate) fn or_empty<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn decoded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Vec<u8>>, D::Error> {
    let encoded: BTreeMap<String, Option<String>> = or_empty(deserializer)?;
    let decode = |(key, text): (String, Option<String>)| {
        let bytes = STANDARD.decode(text.unwrap_or_default());
        Ok((key, bytes.map_err(|_| D::Error::custom("a value of data is not base64"))?))
    };
    encoded.into_iter().map(decode).collect()
}

// === impl SecretObject ===

impl SecretObject {
    /// Copies the fields of `view`.
    pub fn of(view: &SecretView<'_>) -> Self {
        Self {
            metadata: HubMeta {
                name: view.name.to_owned(),
                uid: view.uid.to_owned(),
                resource_version: view.resource_version.to_owned(),
                creation_timestamp: view.creation_timestamp.map(str::to_owned),
                labels: view.labels.clone(),
                annotations: view.annotations.clone(),
                labels_are_cut: false,
            },
            data: view.data.clone(),
        }
    }

    pub fn view(&self) -> SecretView<'_> {
        SecretView {
            name: &self.metadata.name,
            uid: &self.metadata.uid,
            resource_version: &self.metadata.resource_version,
            creation_timestamp: self.metadata.creation_timestamp.as_deref(),
            labels: &self.metadata.labels,
            annotations: &self.metadata.annotations,
            data: &self.data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nulls_are_empty_and_data_is_decoded() {
        let secret: SecretObject = serde_json::from_str(
            r#"{"kind":"Secret","metadata":{"name":"c1","uid":"u","resourceVersion":"7","labels":null,
                "creationTimestamp":"2026-01-01T00:00:00Z","managedFields":[]},"data":{"token":"Y2FuYXJ5","empty":null}}"#,
        )
        .expect("a Secret");
        let view = secret.view();
        assert_eq!((view.name, view.uid, view.resource_version), ("c1", "u", "7"));
        assert_eq!((&*view.data["token"], &*view.data["empty"]), (&b"canary"[..], &b""[..]));
        assert!(view.labels.is_empty());
        let bare: HubList<SecretObject> = serde_json::from_str(r#"{"items":null}"#).expect("a list");
        assert!(bare.items.is_empty());
    }

    #[test]
    fn what_cannot_be_read_is_not_repeated() {
        let error = serde_json::from_str::<SecretObject>(r#"{"data":{"token":"canary!"}}"#).err().expect("no base64");
        assert!(!error.to_string().contains("canary"), "{error}");
    }
}
