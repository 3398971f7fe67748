//! The known profiles, from watches and from responses to writes.
//!
//! Stored as text: ten thousand objects as trees would be most of this program's memory, and each
//! is read once a minute.

use std::collections::{BTreeMap, HashMap};

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use parking_lot::Mutex;
use register::profile::{Owner, owner};
use serde_json::Value;

use crate::calls::{MANAGER, value};
use crate::wakes::Key;

/// Profiles of all namespaces that are published into.
pub struct Books {
    /// Namespace of the clusters' Secrets.
    place: String,
    /// None: the namespace is not listed yet.
    namespaces: Mutex<BTreeMap<String, Option<HashMap<String, Profile>>>>,
}

/// An existing profile.
#[derive(Debug, Clone)]
pub struct Profile {
    pub uid: String,
    pub version: String,
    pub owner: Owner,
    /// JSON; empty for another manager's profile.
    text: Box<str>,
}

/// State of a profile's name.
#[derive(Debug, Clone)]
pub enum Entry {
    /// The namespace is not listed yet.
    Unknown,
    Free,
    There(Profile),
}

// === impl Books ===

impl Books {
    pub fn new(place: &str, namespaces: &[String]) -> Self {
        let namespaces = namespaces.iter().map(|namespace| (namespace.clone(), None)).collect();
        Self { place: place.to_owned(), namespaces: Mutex::new(namespaces) }
    }

    /// Takes the list of a namespace.
    pub fn listed(&self, namespace: &str, objects: Vec<DynamicObject>) {
        let profiles = objects.into_iter().map(|object| (object.name_any(), Profile::read(object, &self.place)));
        self.namespaces.lock().insert(namespace.to_owned(), Some(profiles.collect()));
    }

    /// Takes a new or changed profile. An event about an older version than the known one was
    /// delayed.
    pub fn see(&self, namespace: &str, object: DynamicObject) {
        let (name, profile) = (object.name_any(), Profile::read(object, &self.place));
        if let Some(Some(known)) = self.namespaces.lock().get_mut(namespace) {
            let is_old = known.get(&name).is_some_and(|known| known.uid == profile.uid && profile.is_before(known));
            if !is_old {
                known.insert(name, profile);
            }
        }
    }

    /// Forgets the profile with this uid.
    pub fn forget(&self, namespace: &str, name: &str, uid: &str) {
        if let Some(Some(known)) = self.namespaces.lock().get_mut(namespace)
            && known.get(name).is_some_and(|known| known.uid == uid)
        {
            known.remove(name);
        }
    }

    pub fn find(&self, namespace: &str, name: &str) -> Entry {
        match self.namespaces.lock().get(namespace) {
            Some(Some(known)) => known.get(name).map_or(Entry::Free, |profile| Entry::There(profile.clone())),
            _ => Entry::Unknown,
        }
    }

    /// Our profiles, by namespace and name.
    pub fn ours(&self) -> Vec<Key> {
        let namespaces = self.namespaces.lock();
        let known = namespaces.iter().filter_map(|(namespace, known)| Some((namespace, known.as_ref()?)));
        let ours = known.flat_map(|(namespace, known)| {
            let ours = known.iter().filter(|(_, profile)| profile.owner == Owner::We);
            ours.map(|(name, _)| (namespace.clone(), name.clone()))
        });
        ours.collect()
    }
}

// === impl Profile ===

impl Profile {
    fn read(mut object: DynamicObject, place: &str) -> Self {
        if let Some(entries) = object.metadata.managed_fields.as_mut() {
            entries.retain(|entry| entry.manager.as_deref() == Some(MANAGER));
        }
        let (uid, version) = (object.uid().unwrap_or_default(), object.resource_version().unwrap_or_default());
        let value = value(&object);
        let owner = owner(&value, place);
        let text = if owner == Owner::We { value.to_string() } else { String::new() };
        Self { uid, version, owner, text: text.into() }
    }

    pub fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Compares versions, which are ordered within one kind (Kubernetes, KEP-5504).
    fn is_before(&self, other: &Self) -> bool {
        let number = |profile: &Self| profile.version.parse::<u128>().ok();
        number(self).zip(number(other)).is_some_and(|(own, other)| own < other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: &str, manager: &str) -> DynamicObject {
        let profile = json!({
            "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ClusterProfile",
            "metadata": {"name": "c1", "uid": uid, "resourceVersion": version,
                "labels": {"x-k8s.io/cluster-manager": manager},
                "managedFields": [{"manager": "kubectl"}, {"manager": MANAGER}]},
            "spec": {"clusterManager": {"name": manager}}, "status": {"version": {"kubernetes": version}},
        });
        serde_json::from_value(profile).unwrap()
    }

    fn version(books: &Books) -> Option<String> {
        match books.find("n", "c1") {
            Entry::There(profile) => Some(profile.version),
            Entry::Free => None,
            Entry::Unknown => panic!("not listed"),
        }
    }

    #[test]
    fn an_event_that_was_overtaken_changes_nothing() {
        let books = Books::new("vela-system", &["n".to_owned()]);
        books.see("n", object("u", "1", "cluster-gateway"));
        assert!(matches!(books.find("n", "c1"), Entry::Unknown), "before the list nothing is known");
        books.listed("n", Vec::new());
        for (uid, told, known) in [("u", "9", "9"), ("u", "10", "10"), ("u", "9", "10"), ("v", "3", "3")] {
            books.see("n", object(uid, told, "cluster-gateway"));
            assert_eq!(version(&books).as_deref(), Some(known), "{uid} {told}");
        }
        books.forget("n", "c1", "u");
        assert!(version(&books).is_some(), "another object of the name");
        books.forget("n", "c1", "v");
        assert_eq!(version(&books), None);
        assert!(matches!(books.find("other", "c1"), Entry::Unknown));
    }

    #[test]
    fn of_others_no_more_is_kept_than_whose_they_are() {
        let books = Books::new("vela-system", &["n".to_owned()]);
        books.listed("n", vec![object("u", "1", "open-cluster-management")]);
        let Entry::There(profile) = books.find("n", "c1") else { panic!("none") };
        assert!(matches!(&profile.owner, Owner::Other(who) if who.contains("open-cluster-management")));
        assert!(profile.text.is_empty() && books.ours().is_empty());
        books.listed("n", vec![object("u", "2", "cluster-gateway")]);
        let Entry::There(profile) = books.find("n", "c1") else { panic!("none") };
        assert_eq!(profile.value()["metadata"]["managedFields"].as_array().unwrap().len(), 1);
        assert_eq!(books.ours(), [("n".to_owned(), "c1".to_owned())]);
    }
}
