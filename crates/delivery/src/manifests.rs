//! Parses manifests: a faulty one becomes an entry with its error.

mod cleaning;

use std::collections::HashMap;

use serde_json::Value as Json;

use self::cleaning::cleaned;
use crate::fields::{group_and_version, is_deeper, text};
use crate::identity::{BadPart, Identity};
use crate::order::{self, rank};

/// A manifest and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Index from 0.
    pub ordinal: usize,
    pub group: String,
    pub version: String,
    pub kind: String,
    /// Empty if the member's kind is not known.
    pub resource: String,
    /// Empty for objects without one.
    pub namespace: String,
    pub name: String,
    /// The wanted object, without what only the API server sets.
    pub object: Result<Json, Fault>,
}

/// A kind as a member has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The plural, as in paths.
    pub name: String,
    pub is_namespaced: bool,
}

/// A member's answer about a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    Found(Resource),
    /// It has no such kind.
    Missing,
    /// It did not answer, and why: nothing is known about the manifest's kind.
    Unknown(String),
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the manifest is not an object")]
    NoObject,
    #[error("the manifest is nested more than {LEVELS} levels deep")]
    TooDeep,
    #[error("Object 'Kind' is missing")]
    NoKind,
    #[error("Object 'apiVersion' is missing")]
    NoVersion,
    #[error("name must be set in manifest")]
    NoName,
    #[error(transparent)]
    BadPart(#[from] BadPart),
    #[error("generateName must not be set in manifest")]
    GenerateName,
    #[error("the namespace must be set in the manifest: {0} are namespaced")]
    NoNamespace(String),
    /// Upstream's text.
    #[error("the server doesn't have a resource type \"{0}\"")]
    UnknownKind(String),
    /// It is unknown whether there is such a kind.
    #[error("discovery of the member's kinds failed: {0}")]
    Undiscovered(String),
    #[error("a duplicate of manifest {0}")]
    Duplicate(usize),
}

/// Deepest nesting of lists and maps.
pub const LEVELS: usize = 100;

/// Parses manifests. `resource` looks up a kind of the member by group, version and kind.
pub fn read(manifests: &[Json], resource: impl Fn(&str, &str, &str) -> Lookup) -> Vec<Manifest> {
    let mut known: HashMap<Identity, usize> = HashMap::new();
    let mut all = Vec::with_capacity(manifests.len());
    for (ordinal, manifest) in manifests.iter().enumerate() {
        let mut one = Manifest::of(ordinal, manifest, &resource);
        if one.object.is_ok() {
            let first = *known.entry(one.identity()).or_insert(ordinal);
            if first != ordinal {
                one.object = Err(Fault::Duplicate(first));
            }
        }
        all.push(one);
    }
    all
}

/// Manifests in the order in which they are applied, rank by rank.
pub fn ranked(manifests: &[Manifest]) -> Vec<(u16, Vec<&Manifest>)> {
    let mut sorted: Vec<&Manifest> = manifests.iter().collect();
    sorted.sort_by_key(|manifest| manifest.rank());
    let groups = sorted.chunk_by(|a, b| a.rank() == b.rank());
    groups.map(|group| (group.first().map_or(0, |one| one.rank()), group.to_vec())).collect()
}

/// The manifests of a rank in two parts, of which the second are bindings of roles: whether an
/// executor may bind a role is determined by that role's rules, so it must exist before.
pub fn bindings_last(rank: Vec<&Manifest>) -> [Vec<&Manifest>; 2] {
    let is_binding = |one: &&Manifest| matches!(&*one.kind, "RoleBinding" | "ClusterRoleBinding");
    let (bindings, others) = rank.into_iter().partition(is_binding);
    [others, bindings]
}

// === impl Manifest ===

impl Manifest {
    pub fn identity(&self) -> Identity {
        Identity {
            group: self.group.clone(),
            resource: self.resource.clone(),
            name: self.name.clone(),
            namespace: self.namespace.clone(),
        }
    }

    pub fn rank(&self) -> u16 {
        let is_object = !matches!(self.object, Err(Fault::NoObject | Fault::TooDeep | Fault::NoKind));
        if is_object { rank(&self.kind) } else { order::UNREAD }
    }

    fn of(ordinal: usize, manifest: &Json, resource: &impl Fn(&str, &str, &str) -> Lookup) -> Self {
        let (group, version) = group_and_version(text(manifest, "/apiVersion"));
        let kind = text(manifest, "/kind");
        let names_kind = !kind.is_empty() && !version.is_empty();
        let found = if names_kind { resource(group, version, kind) } else { Lookup::Missing };
        let known = match &found {
            Lookup::Found(found) => Some(found),
            Lookup::Missing | Lookup::Unknown(_) => None,
        };
        let is_namespaced = known.is_none_or(|found| found.is_namespaced);
        let namespace = if is_namespaced { text(manifest, "/metadata/namespace") } else { "" };
        let mut one = Self {
            ordinal,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            resource: known.map(|found| found.name.clone()).unwrap_or_default(),
            namespace: namespace.to_owned(),
            name: text(manifest, "/metadata/name").to_owned(),
            object: Ok(Json::Null),
        };
        one.object = one.checked(manifest, &found).map(|()| cleaned(manifest, is_namespaced));
        one
    }

    fn checked(&self, manifest: &Json, found: &Lookup) -> Result<(), Fault> {
        if !manifest.is_object() {
            return Err(Fault::NoObject);
        }
        if is_deeper(manifest, LEVELS) {
            return Err(Fault::TooDeep);
        }
        if self.kind.is_empty() {
            return Err(Fault::NoKind);
        }
        if text(manifest, "/apiVersion").is_empty() {
            return Err(Fault::NoVersion);
        }
        if !text(manifest, "/metadata/generateName").is_empty() {
            return Err(Fault::GenerateName);
        }
        if self.name.is_empty() {
            return Err(Fault::NoName);
        }
        // A kind that is not known has no resource, but everything else can be checked.
        let mut identity = self.identity();
        if identity.resource.is_empty() {
            "unknown".clone_into(&mut identity.resource);
        }
        identity.check(&self.version)?;
        match found {
            Lookup::Missing => Err(Fault::UnknownKind(self.kind.clone())),
            Lookup::Unknown(why) => Err(Fault::Undiscovered(why.clone())),
            Lookup::Found(found) if found.is_namespaced && self.namespace.is_empty() => {
                Err(Fault::NoNamespace(found.name.clone()))
            }
            Lookup::Found(_) => Ok(()),
        }
    }

    /// Whether this faulty manifest may mean `tracked`: everything that it says of its object fits.
    /// Without a known kind and without a name it means nothing.
    pub fn may_mean(&self, tracked: &Identity) -> bool {
        let is_open = |text: &str| text.is_empty();
        let is_group = is_open(&self.version) || self.group == tracked.group;
        let is_resource = is_open(&self.resource) || self.resource == tracked.resource;
        let is_name = is_open(&self.name) || self.name == tracked.name;
        let is_namespace =
            is_open(&self.namespace) || is_open(&tracked.namespace) || self.namespace == tracked.namespace;
        let says_something = !is_open(&self.name) || !is_open(&self.resource);
        says_something && is_group && is_resource && is_name && is_namespace
    }
}

#[cfg(test)]
mod tests;
