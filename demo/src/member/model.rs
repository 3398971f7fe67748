//! The objects of a sample member: a pure, ordered map with one resource version for everything.
//!
//! No IO, no clock, no locks. Every mutation returns the [`Change`] it made, which carries the state before
//! and after, so that a watch with selectors can tell ADDED from MODIFIED from DELETED without a history of
//! its own.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    kind::Kind,
    object::{Key, Object},
    selector::Selection,
};

/// One mutation and the version it made.
#[derive(Debug)]
pub(crate) struct Change {
    /// The resource version of the model after the mutation.
    pub(crate) version: u64,
    /// The object before it; `None` when it was created.
    pub(crate) before: Option<Arc<Object>>,
    /// The object after it; `None` when it was deleted.
    pub(crate) after: Option<Arc<Object>>,
}

/// All objects of a member.
#[derive(Debug)]
pub(crate) struct Model {
    objects: BTreeMap<Key, Arc<Object>>,
    version: u64,
}

// === impl Model ===

impl Model {
    /// An empty model whose next mutation makes version `version + 1`.
    pub(crate) fn new(version: u64) -> Self {
        Self { objects: BTreeMap::new(), version }
    }

    /// The version of the last mutation.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Creates or replaces an object. `None` if the body has no `metadata.name`, and then nothing changed.
    pub(crate) fn put(&mut self, kind: Kind, mut body: Value) -> Option<Change> {
        let key = Key::of(kind, &body)?;
        self.version += 1;
        stamp(&mut body, self.version);
        let after = Arc::new(Object { key: key.clone(), body });
        Some(Change { version: self.version, before: self.objects.insert(key, Arc::clone(&after)), after: Some(after) })
    }

    /// Deletes an object. `None` if there was none.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Change> {
        let before = self.objects.remove(key)?;
        self.version += 1;
        Some(Change { version: self.version, before: Some(before), after: None })
    }

    /// One object.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.objects.get(key).cloned()
    }

    /// The selected objects, ordered by namespace and name.
    pub(crate) fn list(&self, selection: &Selection) -> Vec<Arc<Object>> {
        self.objects.values().filter(|object| selection.matches(object)).cloned().collect()
    }
}

/// Writes the resource version into an object's metadata.
pub(crate) fn stamp(body: &mut Value, version: u64) {
    body["metadata"]["resourceVersion"] = Value::String(version.to_string());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "shop"}, "status": {"phase": "Running"}})
    }

    #[test]
    fn a_change_knows_what_was_there_before() {
        let mut model = Model::new(10);
        let created = model.put(Kind::Pod, pod("a")).unwrap();
        assert!(created.before.is_none());
        assert_eq!(created.version, 11);
        let replaced = model.put(Kind::Pod, pod("a")).unwrap();
        let before = replaced.before.unwrap();
        assert_eq!(before.field("metadata.resourceVersion"), "11");
        assert_eq!(replaced.after.unwrap().field("metadata.resourceVersion"), "12");
        let removed = model.remove(&Key::new(Kind::Pod, "shop", "a")).unwrap();
        assert!(removed.after.is_none());
        assert_eq!(removed.version, 13);
    }

    #[test]
    fn what_does_not_exist_changes_nothing() {
        let mut model = Model::new(10);
        assert!(model.put(Kind::Pod, json!({"metadata": {}})).is_none());
        assert!(model.remove(&Key::new(Kind::Pod, "shop", "a")).is_none());
        assert_eq!(model.version(), 10);
    }

    #[test]
    fn lists_are_ordered_and_scoped() {
        let mut model = Model::new(0);
        for name in ["b", "a", "c"] {
            model.put(Kind::Pod, pod(name));
        }
        model.put(Kind::Node, json!({"metadata": {"name": "n"}}));
        let names = |selection: &Selection| -> Vec<String> {
            let listed = model.list(selection);
            listed.iter().map(|o| o.key.name.clone()).collect()
        };
        assert_eq!(names(&Selection::all(Kind::Pod, None)), ["a", "b", "c"]);
        assert_eq!(names(&Selection::all(Kind::Pod, Some("shop".into()))).len(), 3);
        assert!(names(&Selection::all(Kind::Pod, Some("other".into()))).is_empty());
        assert_eq!(names(&Selection::all(Kind::Node, None)), ["n"]);
    }
}
