//! What tells objects of a member apart.

use serde::{Deserialize, Serialize};

/// An object of a member. Of two that differ in version only, this is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    pub group: String,
    /// In plural, as in paths.
    pub resource: String,
    pub name: String,
    /// Empty for objects without one.
    pub namespace: String,
}

/// An object that was applied, and which one of that name it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tracked {
    #[serde(flatten)]
    pub identity: Identity,
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

// === impl Tracked ===

impl Tracked {
    /// As they are listed: by group, version, resource, namespace, name.
    pub fn order(&self) -> (&str, &str, &str, &str, &str) {
        let Identity { group, resource, name, namespace } = &self.identity;
        (group, &self.version, resource, namespace, name)
    }
}
