//! Names of member clusters.
//!
//! A value of this type is valid: it can go into a path, a review or a log unchanged.

use std::fmt;
use std::sync::Arc;

/// A valid cluster name: a DNS-1123 subdomain (lower-case letters, digits, `-`, `.`; at most 253
/// bytes).
///
/// Cheap to clone. The rule is that of Kubernetes object names
/// (`k8s.io/apimachinery/pkg/util/validation.IsDNS1123Subdomain`), because a cluster has the name
/// of its Secret.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterName(Arc<str>);

/// The text is not a DNS-1123 subdomain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a cluster name must be a lower-case DNS-1123 subdomain (letters, digits, '-' and '.', at most 253 characters)"
)]
pub struct InvalidClusterName;

// === impl ClusterName ===

impl ClusterName {
    /// Longest name Kubernetes accepts, in bytes.
    pub const MAX_LEN: usize = 253;

    pub fn parse(text: &str) -> Result<Self, InvalidClusterName> {
        if text.is_empty() || text.len() > Self::MAX_LEN || !text.split('.').all(is_label) {
            return Err(InvalidClusterName);
        }
        Ok(Self(Arc::from(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text without a copy, for types that share it.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

/// Whether `label` is a DNS-1123 label of any length.
pub(crate) fn is_label(label: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = label.as_bytes();
    bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
}

impl std::borrow::Borrow<str> for ClusterName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_kubernetes_objects() {
        for name in ["a", "0", "c-1", "a.b", "1.2.3", &"a".repeat(253)] {
            assert_eq!(ClusterName::parse(name).as_ref().map(ClusterName::as_str), Ok(name));
        }
        for name in ["", "A", "a_b", "-a", "a-", "a..b", ".a", "a.", "a-.b", "a/b", "a%2f", "é", "..", &"a".repeat(254)]
        {
            assert_eq!(ClusterName::parse(name), Err(InvalidClusterName), "{name}");
        }
    }
}
