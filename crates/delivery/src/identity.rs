//! What identifies objects of a member.

use serde::{Deserialize, Serialize};

/// The group of roles and their bindings.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";
/// Group and resource of the definitions of kinds.
pub const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io", "customresourcedefinitions");

/// Identifies an object of a member. Two objects that differ only in version have the same
/// identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Identity {
    pub group: String,
    /// The plural, as in paths.
    pub resource: String,
    pub name: String,
    /// Empty for objects without one.
    pub namespace: String,
}

/// An applied object, with the UID that tells it from others of that name. Deserializing it checks
/// that its parts are valid in a path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written")]
pub struct Tracked {
    #[serde(flatten)]
    pub identity: Identity,
    pub version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// The serialized form, unchecked.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    #[serde(flatten)]
    identity: Identity,
    version: String,
    uid: String,
}

/// A part of an identity that is not valid in a path: the path would be that of another object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} {value:?} cannot be part of a path")]
pub struct BadPart {
    pub part: &'static str,
    /// Its first characters.
    pub value: String,
}

/// Most characters of a domain name, which groups and names are, and of one label of it.
const DOMAIN: usize = 253;
const LABEL: usize = 63;
/// Most characters of a part that an error shows.
const TOLD: usize = 300;

// === impl Identity ===

impl Identity {
    /// Checks that each part is valid in the path of the object, in `version` of its group.
    ///
    /// # Errors
    ///
    /// Returns the first part that is not. Names are valid by Kubernetes' `IsValidPathSegmentName`,
    /// and must also have none of `?`, `#`, `\\` and control characters.
    pub fn check(&self, version: &str) -> Result<(), BadPart> {
        let Self { group, resource, name, namespace } = self;
        let parts = [
            ("group", group, group.is_empty() || is_domain(group, DOMAIN)),
            ("resource", resource, is_domain(resource, DOMAIN)),
            ("metadata.namespace", namespace, namespace.is_empty() || is_domain(namespace, LABEL)),
            ("metadata.name", name, is_segment(name)),
        ];
        let parts = parts.map(|(part, value, is_good)| (part, value.as_str(), is_good));
        let version = [("version", version, is_domain(version, LABEL))];
        match version.into_iter().chain(parts).find(|(_, _, is_good)| !is_good) {
            None => Ok(()),
            Some((part, value, _)) => Err(BadPart { part, value: value.chars().take(TOLD).collect() }),
        }
    }
}

fn is_domain(text: &str, most: usize) -> bool {
    let is_of_it = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= most && text.chars().all(is_of_it) && is_end(text.chars().next()) && is_end(text.chars().next_back())
}

fn is_segment(name: &str) -> bool {
    let is_bad = |c: char| matches!(c, '/' | '%' | '?' | '#' | '\\') || c.is_control();
    !matches!(name, "" | "." | "..") && name.len() <= DOMAIN && !name.contains(is_bad)
}

// === impl Tracked ===

impl TryFrom<Written> for Tracked {
    type Error = BadPart;

    fn try_from(Written { identity, version, uid }: Written) -> Result<Self, BadPart> {
        identity.check(&version)?;
        Ok(Self { identity, version, uid })
    }
}

impl Tracked {
    /// The key by which they are listed: group, version, resource, namespace, name.
    pub fn order(&self) -> (&str, &str, &str, &str, &str) {
        let Identity { group, resource, name, namespace } = &self.identity;
        (group, &self.version, resource, namespace, name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_is_read_leads_to_another_object() {
        let good = json!({"group": "rbac.authorization.k8s.io", "version": "v1", "resource": "roles",
            "namespace": "n", "name": "system:a"});
        let read = |part: &str, value: &str| {
            let mut one = good.clone();
            one[part] = json!(value);
            serde_json::from_value::<Tracked>(one)
        };
        assert!(read("namespace", "").is_ok() && read("group", "").is_ok() && read("name", "a b").is_ok());
        for (part, values) in [
            ("group", &["a/b", "..", "A", "a?b"][..]),
            ("version", &["", "v1/x", "../v1"]),
            ("resource", &["", "pods/exec", "a%2fb"]),
            ("namespace", &["a/..", "..", "a#", "a.", "kube-system?"]),
            ("name", &["", "..", "a/b", "a?dryRun=All", "a#b", "a\\b", "a\nb", "a%2fb"]),
        ] {
            for value in values {
                let error = read(part, value).expect_err(value).to_string();
                assert!(error.contains("cannot be part of a path"), "{error}");
            }
        }
    }
}
