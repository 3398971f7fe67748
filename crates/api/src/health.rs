//! The last reported health of a cluster.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secret::{ClusterSpec, HEALTHY_ANNOTATION, HEALTHY_REASON_ANNOTATION};

/// `status` of a `ClusterGateway`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    #[serde(default)]
    pub healthy: bool,
    /// A word or a sentence. Omitted if empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub healthy_reason: String,
}

// === impl Health ===

impl Health {
    /// The health in the Secret's annotations. Not healthy if these contain none.
    ///
    /// A value that is not a boolean is no reason to hide the cluster, as the Go cluster-gateway
    /// does. The reason then reports that value.
    pub fn of(cluster: &ClusterSpec) -> Self {
        let healthy_reason = cluster.healthy_reason.clone().unwrap_or_default();
        match cluster.healthy.as_deref().map(boolean) {
            None => Self { healthy: false, healthy_reason },
            Some(Some(healthy)) => Self { healthy, healthy_reason },
            Some(None) => Self {
                healthy: false,
                healthy_reason: format!(
                    "the annotation {HEALTHY_ANNOTATION} is neither true nor false: report the health again"
                ),
            },
        }
    }

    /// The Secret's JSON with this health in its annotations. `None` if it is not a JSON object.
    pub fn annotate(&self, secret: &[u8]) -> Option<Bytes> {
        let mut secret: Value = serde_json::from_slice(secret).ok()?;
        let metadata = secret.as_object_mut()?.entry("metadata").or_insert_with(|| Map::new().into());
        let annotations = metadata.as_object_mut()?.entry("annotations").or_insert_with(|| Map::new().into());
        if annotations.is_null() {
            *annotations = Map::new().into();
        }
        let annotations = annotations.as_object_mut()?;
        annotations.insert(HEALTHY_ANNOTATION.to_owned(), self.healthy.to_string().into());
        annotations.insert(HEALTHY_REASON_ANNOTATION.to_owned(), self.healthy_reason.clone().into());
        serde_json::to_vec(&secret).ok().map(Bytes::from)
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
    use serde_json::json;

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

    #[test]
    fn a_secret_gets_both_annotations_and_keeps_the_rest() {
        let health = Health { healthy: true, healthy_reason: "Fine".into() };
        for annotations in [json!(null), json!({}), json!({"other": "x", HEALTHY_ANNOTATION: "false"})] {
            let secret = json!({"metadata": {"name": "c1", "resourceVersion": "9", "annotations": annotations}, "data": {"token": "dA=="}});
            let written = health.annotate(secret.to_string().as_bytes()).expect("a Secret");
            let written: Value = serde_json::from_slice(&written).expect("JSON");
            assert_eq!(written["metadata"]["annotations"][HEALTHY_ANNOTATION], "true");
            assert_eq!(written["metadata"]["annotations"][HEALTHY_REASON_ANNOTATION], "Fine");
            assert_eq!(written["metadata"]["annotations"].get("other"), annotations.get("other"));
            assert_eq!((&written["data"], &written["metadata"]["resourceVersion"]), (&secret["data"], &json!("9")));
        }
        assert!(
            health.annotate(b"{}").is_some() && health.annotate(b"[]").is_none() && health.annotate(b"<").is_none()
        );
    }
}
