//! One object of a sample member, and where it is stored.

use serde_json::Value;

use super::kind::Kind;

/// Identifies an object. Orders by kind, namespace, name: the order of a Kubernetes list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The resource type.
    pub(crate) kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// `metadata.name`.
    pub(crate) name: String,
}

/// One stored object.
#[derive(Debug)]
pub(crate) struct Object {
    /// Where it is stored.
    pub(crate) key: Key,
    /// The whole object, `metadata.resourceVersion` included.
    pub(crate) body: Value,
}

// === impl Key ===

impl Key {
    /// A key; `namespace` is empty for cluster-scoped kinds.
    pub(crate) fn new(kind: Kind, namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }

    /// The key an object's own metadata asks for; `None` without a name.
    pub(super) fn of(kind: Kind, body: &Value) -> Option<Self> {
        let metadata = &body["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default();
        Some(Self::new(kind, namespace, metadata["name"].as_str()?))
    }
}

// === impl Object ===

impl Object {
    /// The text at a dotted path such as `status.phase`; absent and non-text fields read as empty, which is
    /// how Kubernetes compares them.
    pub(crate) fn field(&self, path: &str) -> &str {
        path.split('.')
            .try_fold(&self.body, |value, segment| value.get(segment))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        self.body["metadata"]["labels"].get(key)?.as_str()
    }
}
