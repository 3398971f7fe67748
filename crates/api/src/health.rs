//! What was last reported of a cluster's health.

pub mod change;

use serde::{Deserialize, Serialize};

use crate::secret::ClusterSpec;

/// `status` of a `ClusterGateway`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    #[serde(default)]
    pub healthy: bool,
    /// In a word or a sentence; left out when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub healthy_reason: String,
}

// === impl Health ===

impl Health {
    /// As the Secret's annotations have it; not healthy where they say nothing.
    ///
    /// A value that is no boolean is no reason to hide the cluster, which is what the incumbent does: the reason then says so.
    pub fn of(cluster: &ClusterSpec) -> Self {
        let healthy_reason = cluster.healthy_reason.clone().unwrap_or_default();
        match cluster.healthy.as_deref().map(boolean) {
            None => Self { healthy: false, healthy_reason },
            Some(Some(healthy)) => Self { healthy, healthy_reason },
            Some(None) => Self {
                healthy: false,
                healthy_reason: format!(
                    "the annotation {} is neither true nor false: report the health again",
                    crate::secret::HEALTHY_ANNOTATION
                ),
            },
        }
    }
}

/// Go's `strconv.ParseBool`.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::token_cluster;

    #[test]
    fn annotations_are_read_as_go_reads_booleans() {
        let health = |healthy: Option<&str>| {
            let spec = ClusterSpec {
                healthy: healthy.map(str::to_owned),
                healthy_reason: Some("Because".into()),
                ..token_cluster("c1")
            };
            Health::of(&spec)
        };
        for (text, expected) in [("True", true), ("t", true), ("1", true), ("F", false), ("0", false)] {
            assert_eq!(health(Some(text)), Health { healthy: expected, healthy_reason: "Because".into() }, "{text}");
        }
        assert!(!health(None).healthy);
        for text in ["yes", " true", "tRUE"] {
            let health = health(Some(text));
            assert!(!health.healthy && health.healthy_reason.contains("neither true nor false"), "{text}: {health:?}");
        }
    }
}
