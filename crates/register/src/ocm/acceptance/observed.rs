//! An object on the hub that acceptance may have made: what of it is kept, and what differs from
//! the wanted one.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde_json::Value;

use super::{DesiredGrant, WORK_FINALIZER};
use crate::csr::CLUSTER_LABEL;

/// Most bytes of other finalizers that are kept, with what each takes by itself, and written back
/// when ours is removed. Of more, none is kept, and all go with ours.
const FINALIZERS: usize = 16 << 10;
const MOST_OWNERS: usize = 16;
/// Bytes. A hub gives uids of 36.
const LONGEST_UID: usize = 256;

/// The key of all sums. Each process has its own and shows it to no client: a client that knew it
/// could write other rights with the sum of the wanted ones.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What acceptance compares of an object, in some hundred bytes: as JSON values, each of the seven
/// or eight objects of a cluster would take five kilobytes. Contents are compared by sums, within
/// the process that made them.
#[derive(Debug, Clone)]
pub struct ObservedGrant {
    version: Option<Box<str>>,
    /// The label.
    cluster: Option<Box<str>>,
    is_leaving: bool,
    has_work_finalizer: bool,
    other_finalizers: Box<[Box<str>]>,
    /// Their uids.
    owners: Box<[Box<str>]>,
    role: Option<u64>,
    rules: Option<u64>,
    subjects: Option<u64>,
}

/// How an existing object differs from its wanted content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Difference {
    Nothing,
    /// In mutable fields.
    Fields,
    /// In immutable fields, or the object is being deleted: delete it first.
    Whole,
}

// === impl ObservedGrant ===

impl ObservedGrant {
    /// Of an object with these `contents`, a JSON object; without them it is unlike any right that
    /// acceptance makes.
    pub fn of(metadata: ObjectMeta, contents: &Value) -> Self {
        let mut finalizers = metadata.finalizers.unwrap_or_default();
        let all = finalizers.len();
        finalizers.retain(|finalizer| finalizer != WORK_FINALIZER);
        let has_work_finalizer = finalizers.len() < all;
        if finalizers.iter().map(|one| one.len() + size_of::<Box<str>>()).sum::<usize>() > FINALIZERS {
            finalizers.clear();
        }
        Self {
            version: metadata.resource_version.map(Into::into),
            cluster: metadata.labels.and_then(|mut labels| labels.remove(CLUSTER_LABEL)).map(Into::into),
            is_leaving: metadata.deletion_timestamp.is_some(),
            has_work_finalizer,
            other_finalizers: finalizers.into_iter().map(Into::into).collect(),
            owners: owners(metadata.owner_references.unwrap_or_default()),
            role: sum(&contents["roleRef"]),
            rules: sum(&contents["rules"]),
            subjects: sum(&contents["subjects"]),
        }
    }

    /// Its `resourceVersion`.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The cluster that its label names.
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Whether it is the cluster's, by its label. A namespace that is not was created by somebody
    /// for another purpose, and an acceptance must not give rights in it. Upstream takes any.
    pub fn is_of(&self, cluster: &str) -> bool {
        self.cluster() == Some(cluster)
    }

    /// The finalizers without the one for works; None if it is not among them.
    pub fn without_work_finalizer(&self) -> Option<&[Box<str>]> {
        self.has_work_finalizer.then_some(&*self.other_finalizers)
    }

    /// Compares only the fields written here. Other labels, finalizers and owners belong to others.
    pub fn difference(&self, wanted: &DesiredGrant) -> Difference {
        let document = &wanted.document;
        let is_same = |field: &str, seen: Option<u64>| document[field].is_null() || sum(&document[field]) == seen;
        if self.is_leaving || !is_same("roleRef", self.role) {
            return Difference::Whole;
        }
        let is_same = is_same("rules", self.rules) && is_same("subjects", self.subjects);
        if is_same && self.has_metadata(&document["metadata"]) { Difference::Nothing } else { Difference::Fields }
    }

    fn has_metadata(&self, wanted: &Value) -> bool {
        let items = |field: &str| wanted[field].as_array().into_iter().flatten();
        let mut labels = wanted["labels"].as_object().into_iter().flatten();
        let has_finalizer = |finalizer: &str| {
            finalizer == WORK_FINALIZER && self.has_work_finalizer
                || self.other_finalizers.iter().any(|other| **other == *finalizer)
        };
        let has_owner = |uid: &str| self.owners.iter().any(|owner| **owner == *uid);
        labels.all(|(key, value)| key == CLUSTER_LABEL && value.as_str().is_some_and(|cluster| self.is_of(cluster)))
            && items("finalizers").all(|finalizer| finalizer.as_str().is_some_and(has_finalizer))
            && items("ownerReferences").all(|owner| owner["uid"].as_str().is_some_and(has_owner))
    }
}

/// None of what is absent.
fn sum(value: &Value) -> Option<u64> {
    (!value.is_null()).then(|| KEY.hash_one(value))
}

/// Anybody may add owners. Of very many, those that are clusters count.
fn owners(mut all: Vec<OwnerReference>) -> Box<[Box<str>]> {
    if all.len() > MOST_OWNERS {
        all.retain(|owner| owner.kind == "ManagedCluster");
    }
    let uids = all.into_iter().take(MOST_OWNERS).map(|owner| owner.uid);
    uids.filter(|uid| uid.len() <= LONGEST_UID).map(Into::into).collect()
}
