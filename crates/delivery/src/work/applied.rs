//! `AppliedManifestWork`: the member's record of what was applied of a work.

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use time::OffsetDateTime;

use super::GROUP;
use crate::condition::read;
use crate::fields::text;
use crate::identity::Tracked;
use crate::ownership::Owner;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Json")]
pub struct AppliedManifestWork {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    pub is_ending: bool,
    pub spec: AppliedSpec,
    pub status: AppliedStatus,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppliedSpec {
    pub hub_hash: String,
    #[serde(rename = "agentID")]
    pub agent_id: String,
    pub manifest_work_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct AppliedStatus {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub applied_resources: Vec<Tracked>,
    #[serde(skip_serializing, deserialize_with = "read")]
    pub eviction_start_time: Option<OffsetDateTime>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of the work has {0} characters: with the hub's hash before it, at most {NAME} are possible")]
pub struct InvalidName(usize);

/// The finalizer of each, until everything that it lists is gone.
pub const APPLIED_FINALIZER: &str = "cluster.open-cluster-management.io/applied-manifest-work-cleanup";
/// Longest name of a work: the hub's 64 digits and a dash come before it, within 253.
const NAME: usize = 188;
const KIND: &str = "AppliedManifestWork";

/// The SHA-256 of the hub's URL, in hex.
pub fn hub_hash(url: &str) -> String {
    let digest = digest(&SHA256, url.as_bytes());
    let digits = digest.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// The name of the `AppliedManifestWork` of `work` on the member.
///
/// # Errors
///
/// Fails if the name of the work is too long for that.
pub fn applied_name(hub_hash: &str, work: &str) -> Result<String, InvalidName> {
    if work.len() > NAME { Err(InvalidName(work.len())) } else { Ok(format!("{hub_hash}-{work}")) }
}

/// The object to create. It has the labels of the work.
pub fn applied_object(name: &str, spec: &AppliedSpec, labels: &Map<String, Json>) -> Json {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": KIND,
        "metadata": {"name": name, "labels": labels, "finalizers": [APPLIED_FINALIZER]},
        "spec": spec,
    })
}

/// Sorts resources as the status lists them.
pub fn sorted(mut resources: Vec<Tracked>) -> Vec<Tracked> {
    resources.sort_by(|a, b| a.order().cmp(&b.order()));
    resources
}

// === impl AppliedManifestWork ===

impl AppliedManifestWork {
    /// The owner of the applied objects.
    pub fn owner(&self) -> Owner {
        Owner {
            api_version: format!("{GROUP}/v1"),
            kind: KIND.to_owned(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

impl TryFrom<Json> for AppliedManifestWork {
    type Error = serde_json::Error;

    /// An unreadable one is an error: what it lists would be forgotten, and stay on the member.
    fn try_from(mut object: Json) -> Result<Self, Self::Error> {
        let mut part = |name: &str| object.get_mut(name).map(Json::take).unwrap_or_default();
        let (spec, status) = (part("spec"), part("status"));
        Ok(Self {
            name: text(&object, "/metadata/name").to_owned(),
            uid: text(&object, "/metadata/uid").to_owned(),
            resource_version: text(&object, "/metadata/resourceVersion").to_owned(),
            is_ending: crate::fields::is_ending(&object),
            spec: Option::deserialize(spec)?.unwrap_or_default(),
            status: Option::deserialize(status)?.unwrap_or_default(),
        })
    }
}
