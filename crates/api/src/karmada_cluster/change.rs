//! A request to write a Cluster: what it contains, whether it fits the current object, and what the
//! object becomes.
//!
//! The identity and the version are checked as in
//! `k8s.io/apiserver/pkg/endpoints/handlers/{create,update,patch}.go`. Upstream's rules decide
//! which content is valid ([`super::problem`]).

mod object;
mod refused;

use std::collections::BTreeMap;

use serde_json::Value;

use super::cluster::{Cluster, is_ours};
use super::kept::Kept;
use super::problem::{self, forbidden};
use super::text::Text;
use super::{MOST_KEPT, Spec};
use crate::object::Document;
use crate::patch::Patch;
use crate::secret::ClusterSpec;

pub use self::object::Object;
pub use self::refused::Refused;

/// Longest body, in bytes. As values in memory it is thirty times as large.
pub const LONGEST: usize = 128 << 10;

/// Most values in a body: each takes some hundred bytes. A Cluster with all that Karmada reports
/// has a few thousand.
const MOST_VALUES: usize = 16 << 10;

/// Most operations in a JSON patch. `Patch::patched` limits the total of what they move and add.
const MOST_OPERATIONS: usize = 1000;

/// The part to write: the object, or only its `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Whole,
    Status,
}

/// A parsed body.
#[derive(Debug)]
pub enum Sent {
    Object(Box<Object>),
    Patch(Patch),
}

/// A Cluster as it should become.
#[derive(Debug)]
pub struct DesiredCluster {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub spec: Spec,
    status: Text,
    /// Whether the caller named the current version, so that another write in between must make
    /// this one fail.
    pub pinned: bool,
    /// Paths of fields that were sent and are dropped.
    pub unknown: Vec<String>,
}

// === impl Sent ===

impl Sent {
    pub fn object(body: &[u8]) -> Result<Self, Refused> {
        check_values(body)?;
        let value: Value = serde_json::from_slice(body).map_err(|_| Refused::Json)?;
        Object::read(value).map(|object| Self::Object(Box::new(object)))
    }

    pub fn merge(body: &[u8]) -> Result<Self, Refused> {
        check_values(body)?;
        Ok(Self::Patch(Patch::merge(body)?))
    }

    pub fn operations(body: &[u8]) -> Result<Self, Refused> {
        check_values(body)?;
        Ok(Self::Patch(Patch::operations(body, MOST_OPERATIONS)?))
    }

    /// The new Cluster from this body. `now` is RFC 3339.
    pub fn created(self, now: &str) -> Result<DesiredCluster, Refused> {
        let Self::Object(object) = self else { return Err(Refused::Json) };
        object.check_type()?;
        let meta = &object.metadata;
        if meta.name.is_empty() {
            return Err(if meta.generate_name.is_empty() { Refused::NoName } else { Refused::GenerateName });
        }
        if !meta.resource_version.is_empty() {
            return Err(Refused::VersionOfNew);
        }
        let problem = problem::name(&meta.name);
        // Like upstream's `PrepareForCreate`.
        DesiredCluster { status: Text::default(), ..object.wanted() }.checked(problem, now)
    }

    /// What `current` becomes with this change. `now` is RFC 3339.
    pub fn changed(&self, current: &Cluster<'_>, part: Part, now: &str) -> Result<DesiredCluster, Refused> {
        let (object, pinned) = match self {
            Self::Object(object) => (Object::clone(object), !object.metadata.resource_version.is_empty()),
            Self::Patch(patch) => {
                let value = serde_json::to_value(Document::new(current, true)).unwrap_or_default();
                // A patch keeps the current version unless it names another, which is checked.
                (Object::read(patch.patched(value)?)?, false)
            }
        };
        object.check(current)?;
        let wanted = object.wanted();
        let wanted = match part {
            Part::Whole => DesiredCluster { status: current.written.clone(), ..wanted },
            Part::Status => DesiredCluster {
                labels: current.labels.clone(),
                annotations: current.annotations.clone(),
                spec: current.spec.clone(),
                ..wanted
            },
        };
        DesiredCluster { pinned, ..wanted }.checked(None, now)
    }
}

/// Counts the values before parsing. Text with commas or brackets counts too high.
fn check_values(body: &[u8]) -> Result<(), Refused> {
    let values = body.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count();
    if values > MOST_VALUES { Err(Refused::TooManyValues(MOST_VALUES)) } else { Ok(()) }
}

// === impl DesiredCluster ===

impl DesiredCluster {
    fn checked(mut self, name: Option<problem::Problem>, now: &str) -> Result<Self, Refused> {
        self.spec.canonicalize(now);
        let mut problems: Vec<_> = name.into_iter().collect();
        problems.extend(problem::all(&self.labels, &self.annotations, &self.spec));
        if self.labels.keys().any(|key| is_ours(key)) {
            problems.push(forbidden("metadata.labels", "labels below core.oam.dev say how the cluster is registered"));
        }
        if !problems.is_empty() {
            return Err(Refused::Invalid { name: self.name, problems });
        }
        Ok(self)
    }

    /// The value of [`crate::karmada::ANNOTATION`], for a Secret that is otherwise `secret`.
    pub fn kept(&self, secret: &ClusterSpec) -> Result<String, Refused> {
        let kept = Kept {
            annotations: self.annotations.clone(),
            spec: self.spec.beyond(&Spec::said(secret)),
            status: self.status.clone(),
        };
        let text = kept.text();
        if text.len() > MOST_KEPT { Err(Refused::TooLarge) } else { Ok(text) }
    }
}

#[cfg(test)]
mod tests;
