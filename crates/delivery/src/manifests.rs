//! Manifests as they are written, read: one that cannot be used is an entry with its error.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::fields::{self, group_and_version, is_deeper, text};
use crate::identity::Identity;
use crate::order::{self, rank};

/// A manifest, in the place where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// From 0.
    pub ordinal: usize,
    pub group: String,
    pub version: String,
    pub kind: String,
    /// Empty where the member has no such kind.
    pub resource: String,
    /// Empty for objects without one.
    pub namespace: String,
    pub name: String,
    /// What is to be there: without what only the API server sets.
    pub object: Result<Json, Fault>,
}

/// A kind as a member has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// In plural, as in paths.
    pub name: String,
    pub is_namespaced: bool,
}

/// Why a manifest cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the manifest is no object")]
    NoObject,
    #[error("the manifest is nested more than {LEVELS} levels deep")]
    TooDeep,
    #[error("Object 'Kind' is missing")]
    NoKind,
    #[error("Object 'apiVersion' is missing")]
    NoVersion,
    #[error("name must be set in manifest")]
    NoName,
    #[error("{field} {value:?} cannot be part of a path")]
    BadName { field: &'static str, value: String },
    #[error("generateName must not be set in manifest")]
    GenerateName,
    #[error("the namespace must be set in the manifest: {0} are namespaced")]
    NoNamespace(String),
    /// As upstream says it.
    #[error("the server doesn't have a resource type \"{0}\"")]
    UnknownKind(String),
    #[error("a duplicate of manifest {0}")]
    Duplicate(usize),
}

/// Lists and maps in each other.
pub const LEVELS: usize = 100;
/// What only the API server sets. A UID would be a condition on the object that is there.
const NOT_WANTED: [&str; 6] =
    ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink"];

/// Reads manifests. `resource` finds a kind of the member: group, version, kind.
pub fn read(manifests: &[Json], resource: impl Fn(&str, &str, &str) -> Option<Resource>) -> Vec<Manifest> {
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

/// Manifests in the order that they are applied in, rank by rank.
pub fn ranked(manifests: &[Manifest]) -> Vec<(u16, Vec<&Manifest>)> {
    let mut sorted: Vec<&Manifest> = manifests.iter().collect();
    sorted.sort_by_key(|manifest| manifest.rank());
    let groups = sorted.chunk_by(|a, b| a.rank() == b.rank());
    groups.map(|group| (group.first().map_or(0, |one| one.rank()), group.to_vec())).collect()
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

    fn of(ordinal: usize, manifest: &Json, resource: &impl Fn(&str, &str, &str) -> Option<Resource>) -> Self {
        let (group, version) = group_and_version(text(manifest, "/apiVersion"));
        let kind = text(manifest, "/kind");
        let found = resource(group, version, kind);
        let is_namespaced = found.as_ref().is_none_or(|found| found.is_namespaced);
        let namespace = if is_namespaced { text(manifest, "/metadata/namespace") } else { "" };
        let object = checked(manifest, found.as_ref()).map(|()| cleaned(manifest, is_namespaced));
        Self {
            ordinal,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            resource: found.map(|found| found.name).unwrap_or_default(),
            namespace: namespace.to_owned(),
            name: text(manifest, "/metadata/name").to_owned(),
            object,
        }
    }
}

fn checked(manifest: &Json, resource: Option<&Resource>) -> Result<(), Fault> {
    let of = |pointer: &str| text(manifest, pointer);
    let (name, namespace) = (of("/metadata/name"), of("/metadata/namespace"));
    if !manifest.is_object() {
        return Err(Fault::NoObject);
    }
    if is_deeper(manifest, LEVELS) {
        return Err(Fault::TooDeep);
    }
    if of("/kind").is_empty() {
        return Err(Fault::NoKind);
    }
    if of("/apiVersion").is_empty() {
        return Err(Fault::NoVersion);
    }
    if !of("/metadata/generateName").is_empty() {
        return Err(Fault::GenerateName);
    }
    if name.is_empty() {
        return Err(Fault::NoName);
    }
    for (field, value) in [("metadata.name", name), ("metadata.namespace", namespace)] {
        if !is_segment(value) {
            return Err(Fault::BadName { field, value: value.chars().take(300).collect() });
        }
    }
    match resource {
        None => Err(Fault::UnknownKind(of("/kind").to_owned())),
        Some(found) if found.is_namespaced && namespace.is_empty() => Err(Fault::NoNamespace(found.name.clone())),
        Some(_) => Ok(()),
    }
}

/// Kubernetes' `IsValidPathSegmentName`: with anything else, a path would be of another object.
fn is_segment(name: &str) -> bool {
    !matches!(name, "." | "..") && !name.contains(['/', '%']) && name.len() <= 253
}

fn cleaned(manifest: &Json, is_namespaced: bool) -> Json {
    let mut object = manifest.clone();
    if let Some(entries) = object.as_object_mut() {
        entries.remove("status");
    }
    if let Some(metadata) = fields::metadata(&mut object) {
        for field in NOT_WANTED {
            metadata.remove(field);
        }
        if !is_namespaced {
            metadata.remove("namespace");
        }
    }
    object
}

#[cfg(test)]
mod tests;
