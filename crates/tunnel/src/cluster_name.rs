//! The name by which a cluster registers and is requested.

use std::fmt;
use std::sync::Arc;

/// Longest name: a DNS subdomain (RFC 1123, and the limit of Kubernetes object names).
const LONGEST: usize = 253;

/// A cluster's name: a DNS subdomain in lower case, so that it fits a header, a label and a
/// Kubernetes object. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterName(Arc<str>);

/// Why a name is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClusterNameError {
    #[error("a cluster's name must not be empty")]
    Empty,
    #[error("a cluster's name must have at most {LONGEST} characters")]
    TooLong,
    #[error(
        "a cluster's name must consist of lower-case letters, digits, '-' and '.', and start and end with a letter or digit"
    )]
    Characters,
}

// === impl ClusterName ===

impl ClusterName {
    /// Accepts what Kubernetes accepts as a DNS-1123 subdomain
    /// (`k8s.io/apimachinery/pkg/util/validation`).
    pub fn parse(name: &str) -> Result<Self, ClusterNameError> {
        if name.is_empty() {
            return Err(ClusterNameError::Empty);
        }
        if name.len() > LONGEST {
            return Err(ClusterNameError::TooLong);
        }
        if name.split('.').all(is_label) { Ok(Self(name.into())) } else { Err(ClusterNameError::Characters) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_label(label: &str) -> bool {
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = label.as_bytes();
    edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
}

impl fmt::Display for ClusterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::str::FromStr for ClusterName {
    type Err = ClusterNameError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::parse(name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_dns_subdomains_in_lower_case() {
        for name in ["a", "north", "n-1.eu.example", "0", "a.b", &"a".repeat(253)] {
            assert_eq!(ClusterName::parse(name).unwrap().as_str(), name);
        }
        for (name, error) in [
            ("", ClusterNameError::Empty),
            (&"a".repeat(254)[..], ClusterNameError::TooLong),
            ("North", ClusterNameError::Characters),
            ("a..b", ClusterNameError::Characters),
            (".a", ClusterNameError::Characters),
            ("a.", ClusterNameError::Characters),
            ("-a", ClusterNameError::Characters),
            ("a-", ClusterNameError::Characters),
            ("a_b", ClusterNameError::Characters),
            ("a/b", ClusterNameError::Characters),
            ("ä", ClusterNameError::Characters),
            ("a b", ClusterNameError::Characters),
        ] {
            assert_eq!(ClusterName::parse(name), Err(error), "{name:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_what_the_pattern_of_kubernetes_accepts(name in "[a-zA-Z0-9.äß_/ -]{0,12}") {
            let label = |label: &str| {
                !label.is_empty()
                    && !label.starts_with('-')
                    && !label.ends_with('-')
                    && label.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
            };
            prop_assert_eq!(ClusterName::parse(&name).is_ok(), name.split('.').all(label));
        }

        #[test]
        fn anything_may_be_asked(name in any::<String>()) {
            if let Ok(name) = ClusterName::parse(&name) {
                prop_assert!(http::HeaderValue::from_str(name.as_str()).is_ok());
                prop_assert_eq!(ClusterName::parse(name.as_str()), Ok(name));
            }
        }
    }
}
