//! A Cluster as clients read it: Karmada's view of a cluster's Secret.

mod columns;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};

use self::columns::age_since;
use super::Spec;
use super::kept::Kept;
use super::text::{Outline, Text};
use crate::health::Health;
use crate::object::ObjectMeta;
use crate::secret::ClusterSpec;

/// One object to be written.
pub struct Cluster<'a> {
    name: &'a str,
    uid: String,
    resource_version: &'a str,
    creation_timestamp: Option<&'a str>,
    age: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub spec: Spec,
    /// The `status` that a client wrote.
    pub(super) written: Text,
    /// The `status` that readers see.
    status: Text,
    version: String,
    /// `status` of the condition `Ready`.
    ready: Option<String>,
}

/// The fields after the metadata.
#[derive(Serialize)]
pub struct Content<'a> {
    spec: &'a Spec,
    status: &'a Text,
}

/// The version digit of a UUID (RFC 9562 §4.2).
const VERSION_DIGIT: usize = 14;

// === impl Cluster ===

impl<'a> Cluster<'a> {
    /// `health`: as last reported. `now`: the wall clock, for the object's age.
    pub fn new(cluster: &'a ClusterSpec, health: &Health, now: SystemTime) -> Self {
        let Kept { annotations, spec, status: written } = Kept::of(cluster);
        let Outline { version, ready: reported } = written.outline();
        let (status, ready) = match (reported, ready(health)) {
            (None, Some(own)) => {
                let status = written.with_condition(&own.to_string());
                let ready = status.outline().ready;
                (status, ready)
            }
            (reported, _) => (written.clone(), reported),
        };
        Self {
            name: cluster.name.as_str(),
            uid: uid(&cluster.uid),
            resource_version: &cluster.resource_version,
            creation_timestamp: cluster.creation_timestamp.as_deref(),
            age: age_since(cluster.creation_timestamp.as_deref(), now),
            labels: labels(&cluster.labels),
            annotations,
            spec: spec.over(Spec::said(cluster)),
            written,
            status,
            version,
            ready,
        }
    }

    /// The remnant of an object that exists no more or cannot be read.
    pub fn remnant(metadata: ObjectMeta<'a>) -> Self {
        Self {
            name: metadata.name,
            uid: uid(metadata.uid),
            resource_version: metadata.resource_version,
            creation_timestamp: metadata.creation_timestamp,
            age: String::new(),
            labels: BTreeMap::new(),
            annotations: BTreeMap::new(),
            spec: Spec::default(),
            written: Text::default(),
            status: Text::default(),
            version: String::new(),
            ready: None,
        }
    }

    pub fn name(&self) -> &'a str {
        self.name
    }

    pub fn uid(&self) -> &str {
        &self.uid
    }

    pub fn resource_version(&self) -> &'a str {
        self.resource_version
    }
}

/// The Secret's uid with another version digit. The hub's garbage collector tells objects apart by
/// uid alone, and a Secret and its Cluster are two objects.
pub fn uid(secret: &str) -> String {
    let digit = |(index, character)| if index == VERSION_DIGIT && character == '4' { '8' } else { character };
    secret.chars().enumerate().map(digit).collect()
}

/// Omits labels of our domains, which describe the registration and not the cluster.
pub(super) fn labels(secret: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = secret.iter().filter(|(key, _)| !is_ours(key));
    shown.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Whether a label is of a domain below `core.oam.dev`. Labels of other `oam.dev` domains, such as
/// KubeVela's `app.oam.dev`, assign objects to an application: readers may select by them.
pub fn is_ours(key: &str) -> bool {
    key.split_once('/').is_some_and(|(domain, _)| domain.ends_with(".core.oam.dev"))
}

/// The condition of Karmada's cluster controller (`pkg/controllers/status`). `None` if no health
/// was reported.
fn ready(health: &Health) -> Option<Value> {
    let (status, reason) = match health.healthy {
        true => ("True", "ClusterReady"),
        false if health.healthy_reason.is_empty() => return None,
        false => ("False", "ClusterNotReachable"),
    };
    let message = &health.healthy_reason;
    Some(json!({"type": "Ready", "status": status, "lastTransitionTime": null, "reason": reason, "message": message}))
}

#[cfg(test)]
mod tests;
