//! Update: the object is replaced where it differs.

use serde_json::{Value as Json, json};

use super::compare::is_same;
use super::{Action, DesiredObject, carried};
use crate::fields::{self, text};
use crate::metadata::merged;

pub fn plan(wanted: &DesiredObject<'_>, observed: &Json) -> Action {
    let metadata = merged(wanted.object, observed);
    let owners = wanted.owner.merged(observed, wanted.claim);
    let is_changed = metadata.is_changed || owners.is_some();
    let is_by_metadata = carried::is_by_metadata(wanted.object);
    let mut object = if is_by_metadata { kept(wanted.object, observed) } else { wanted.object.clone() };
    carried::carry(&mut object, observed);
    if !is_changed && (is_by_metadata || is_same(&object, observed, wanted.known, wanted.object)) {
        return Action::Nothing;
    }
    metadata.put(&mut object);
    if let Some(metadata) = fields::metadata(&mut object) {
        let owners = owners.map(Json::from).or_else(|| observed.pointer("/metadata/ownerReferences").cloned());
        // The member's, whatever the manifest says: finalizers belong to the controllers that act
        // on them.
        let finalizers = observed.pointer("/metadata/finalizers").cloned();
        for (field, value) in [("ownerReferences", owners), ("finalizers", finalizers)] {
            match value {
                Some(value) => metadata.insert(field.to_owned(), value),
                None => metadata.remove(field),
            };
        }
        metadata.insert("resourceVersion".to_owned(), json!(text(observed, "/metadata/resourceVersion")));
    }
    Action::Replace(object)
}

/// The existing object, with the wanted metadata.
fn kept(wanted: &Json, observed: &Json) -> Json {
    let mut object = observed.clone();
    if let Some(entries) = object.as_object_mut() {
        for field in ["apiVersion", "kind", "metadata"] {
            entries.insert(field.to_owned(), wanted.get(field).cloned().unwrap_or_default());
        }
    }
    object
}
