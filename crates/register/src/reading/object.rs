//! The common parts of objects of all kinds.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::Refused;
use crate::fields::{field, required, text, texts};

/// Field next to `spec` and `status` of an object that is kept without its long fields: the limit
/// of all these fields together, in bytes.
pub const TOO_LARGE: &str = "cluster-gateway/too-large";

/// A source object: its kind and its metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    pub kind: String,
    /// `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    pub name: String,
    pub uid: String,
    /// RFC 3339, in UTC, as the hub writes it.
    pub created: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    /// It was deleted, and finalizers hold it.
    pub is_deleting: bool,
    /// Not all fields were kept, because together they exceed this number of bytes.
    too_large: Option<u64>,
}

// === impl Object ===

impl Object {
    /// Reads any object of a hub. Refuses one without kind, name or uid.
    pub fn read(object: &Value) -> Result<Self, Refused> {
        let (group, version) = group_version(required(object, "apiVersion")?);
        let namespace = text(object, "metadata.namespace")?;
        Ok(Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: required(object, "kind")?.to_owned(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: required(object, "metadata.name")?.to_owned(),
            uid: required(object, "metadata.uid")?.to_owned(),
            created: text(object, "metadata.creationTimestamp")?.to_owned(),
            labels: texts(object, "metadata.labels")?,
            annotations: texts(object, "metadata.annotations")?,
            is_deleting: field(object, "metadata.deletionTimestamp").is_some(),
            too_large: object.get(TOO_LARGE).and_then(Value::as_u64),
        })
    }

    /// Reads a whole object of `group`'s `kind` in one of `versions`.
    pub(crate) fn whole_of(
        object: &Value,
        group: &str,
        kind: &str,
        versions: &'static [&'static str],
    ) -> Result<Self, Refused> {
        let object = Self::read(object)?;
        object.check(group, kind, versions)?;
        object.whole()?;
        Ok(object)
    }

    /// `group/Kind/namespace/name`; the core group and the namespace of cluster-scoped objects are
    /// empty.
    pub fn reference(&self) -> String {
        let namespace = self.namespace.as_deref().unwrap_or_default();
        format!("{}/{}/{namespace}/{}", self.group, self.kind, self.name)
    }

    /// Refuses other kinds than `group`'s `kind` in one of `versions`.
    pub(crate) fn check(&self, group: &str, kind: &str, versions: &'static [&'static str]) -> Result<(), Refused> {
        if (self.group.as_str(), self.kind.as_str()) != (group, kind) {
            return Err(Refused::Kind);
        }
        if !versions.contains(&self.version.as_str()) {
            return Err(Refused::Version(versions));
        }
        Ok(())
    }

    /// Refuses an object whose fields were not all kept. An earlier registration of it stays.
    pub(crate) fn whole(&self) -> Result<(), Refused> {
        self.too_large.map_or(Ok(()), |most| Err(Refused::LongFields(most)))
    }
}

/// Splits an `apiVersion`; the core group has no name.
pub(crate) fn group_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}
