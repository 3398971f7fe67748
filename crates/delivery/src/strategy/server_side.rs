//! Server-side apply.

use std::collections::HashMap;

use serde_json::{Value as Json, json};

use super::compare::{still_has, was_seen};
use super::ignore::{Ignore, IgnoreError, SELECTORS, without};
use super::managed::{is_applied_by, is_left_over};
use super::{Action, DesiredObject, Refusal, go, owners};
use crate::fields::{self, child, group_and_version, text};
use crate::identity::RBAC;
use crate::metadata::without_empty_creation;

/// The default field manager, and the prefix that each must have.
pub const FIELD_MANAGER: &str = "work-agent";
/// The annotation with the hash of what was applied, on objects with ignored fields.
pub const CONFIG_HASH: &str = "open-cluster-management.io/config-spec-hash";
/// Longest field manager that the API server accepts, in bytes.
const MANAGER: usize = 128;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerSide {
    /// Empty for [`FIELD_MANAGER`].
    pub manager: String,
    /// Takes over fields that others manage.
    pub force: bool,
    pub ignore: Vec<Ignore>,
}

// === impl ServerSide ===

impl ServerSide {
    pub(super) fn plan(&self, wanted: &DesiredObject<'_>, observed: Option<&Json>) -> Action {
        let Some(manager) = self.manager() else {
            return Action::Refused(Refusal::FieldManager(self.manager.chars().take(MANAGER).collect()));
        };
        let mut whole = wanted.object.clone();
        without_empty_creation(&mut whole);
        let mut object = whole.clone();
        if self.ignore.is_empty() {
            if observed.is_some_and(|observed| is_known(wanted, observed, manager)) {
                return observed.map_or(Action::Nothing, |observed| owners(wanted, observed));
            }
        } else {
            if let Err(error) = self.reduce(&mut object) {
                return Action::Refused(Refusal::Ignore(error));
            }
            let hash = go::hash(&object);
            match observed {
                // A new object gets all of its fields.
                None => object = whole,
                Some(observed) if annotation(observed) == hash => return owners(wanted, observed),
                Some(_) => {}
            }
            annotate(&mut object, &hash);
        }
        prepare(&mut object, observed);
        Action::Apply { object, manager: manager.to_owned(), force: self.force }
    }

    fn manager(&self) -> Option<&str> {
        let manager = if self.manager.is_empty() { FIELD_MANAGER } else { &self.manager };
        let is_printable = !manager.chars().any(char::is_control);
        (manager.starts_with(FIELD_MANAGER) && manager.len() <= MANAGER && is_printable).then_some(manager)
    }

    fn reduce(&self, object: &mut Json) -> Result<(), IgnoreError> {
        let count = |ignore: &Ignore| ignore.paths.len() + ignore.pointers.len() + ignore.jq.len();
        if self.ignore.iter().map(count).sum::<usize>() > SELECTORS || self.ignore.len() > SELECTORS {
            return Err(IgnoreError::TooMany);
        }
        for ignore in &self.ignore {
            without(object, ignore)?;
        }
        let is_whole = ["/apiVersion", "/kind", "/metadata/name"].iter().all(|field| !text(object, field).is_empty());
        if is_whole { Ok(()) } else { Err(IgnoreError::Identity) }
    }
}

/// Whether this manifest was applied, and is still in place: then it is not applied again. Others
/// may apply fields besides ours, as an autoscaler does.
fn is_known(wanted: &DesiredObject<'_>, observed: &Json, manager: &str) -> bool {
    let DesiredObject { object, known, .. } = *wanted;
    let has = |map: &str| {
        let pointer = format!("/metadata/{map}");
        let there: HashMap<&str, &str> = fields::texts(observed, &pointer).collect();
        fields::texts(object, &pointer).all(|(key, value)| there.get(key) == Some(&value))
            && !is_left_over(manager, object, observed, map)
    };
    ["labels", "annotations"].into_iter().all(has)
        && (was_seen(object, observed, known)
            || (still_has(object, observed, known) && is_applied_by(manager, object, observed)))
}

/// Removes finalizers, which belong to the controllers that act on them: one that is applied at
/// first and not again would be removed by that. An RBAC object must still be the one with which
/// the executor's rights were compared, so its version is sent.
fn prepare(object: &mut Json, observed: Option<&Json>) {
    let is_rbac = group_and_version(text(object, "/apiVersion")).0 == RBAC;
    let Some(metadata) = fields::metadata(object) else { return };
    metadata.remove("finalizers");
    if let Some(observed) = observed.filter(|_| is_rbac) {
        metadata.insert("resourceVersion".to_owned(), json!(text(observed, "/metadata/resourceVersion")));
    }
}

fn annotation(object: &Json) -> &str {
    let annotations = object.pointer("/metadata/annotations");
    annotations.and_then(|all| all.get(CONFIG_HASH)).and_then(Json::as_str).unwrap_or_default()
}

fn annotate(object: &mut Json, hash: &str) {
    let metadata = fields::metadata(object);
    if let Some(annotations) = metadata.and_then(|metadata| child(metadata, "annotations")) {
        annotations.insert(CONFIG_HASH.to_owned(), json!(hash));
    }
}
