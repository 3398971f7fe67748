//! Decisions on the hub: their content, and their writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use placement::objects::{PLACEMENT_LABEL, PlacementDecision};
use serde_json::Value;
use time::OffsetDateTime;

use super::{Woken, World, is_older};
use crate::calls::MANAGER;
use crate::parts::placement::kinds::Of;
use crate::wakes::Key;

/// Field manager of upstream's scheduler, named after its program.
const THEIRS: &str = "placement";

/// The fields of a decision that are compared with the desired ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionOnHub {
    pub uid: String,
    pub version: String,
    pub labels: BTreeMap<String, String>,
    /// Owner references, unchanged.
    pub owners: Vec<Value>,
    /// In the order of the list.
    pub clusters: Vec<String>,
    /// Whether each entry has a cluster's name, an empty reason, and nothing else.
    pub is_plain: bool,
    /// Another manager that wrote the list.
    writer: Option<String>,
    /// Whether a scheduler wrote the list, or would have written the same.
    pub(super) is_scheduled: bool,
    /// Number of the last list of this kind that began before the decision was seen.
    pub(super) seen_in: u32,
}

// === impl DecisionOnHub ===

impl DecisionOnHub {
    fn read(object: &Value) -> Self {
        let metadata = &object["metadata"];
        let list = || object["status"]["decisions"].as_array().into_iter().flatten();
        let cluster = |decision: &Value| decision["clusterName"].as_str().unwrap_or_default().to_owned();
        let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
        let labels = metadata["labels"].as_object().into_iter().flatten();
        Self {
            uid: text("uid"),
            version: text("resourceVersion"),
            labels: labels.map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect(),
            owners: metadata["ownerReferences"].as_array().cloned().unwrap_or_default(),
            clusters: list().map(cluster).collect(),
            is_plain: list().all(is_plain),
            writer: writers(metadata).find(|manager| *manager != MANAGER).map(str::to_owned),
            is_scheduled: is_scheduled(metadata),
            seen_in: 0,
        }
    }

    fn placement(&self) -> Option<&String> {
        self.labels.get(PLACEMENT_LABEL)
    }

    fn lists_as(&self, other: &Self) -> bool {
        (&self.clusters, self.is_plain) == (&other.clusters, other.is_plain)
    }
}

/// Managers that own the list (`metadata.managedFields`).
fn writers(metadata: &Value) -> impl Iterator<Item = &str> {
    let entries = metadata["managedFields"].as_array().into_iter().flatten();
    let of_list = entries.filter(|entry| !entry["fieldsV1"]["f:status"]["f:decisions"].is_null());
    of_list.filter_map(|entry| entry["manager"].as_str())
}

/// Whether only schedulers own the list, by their managers' names: any of our replicas, or
/// upstream's.
fn is_scheduled(metadata: &Value) -> bool {
    let is_of_scheduler = |manager| [MANAGER, THEIRS].contains(&manager);
    writers(metadata).next().is_some() && writers(metadata).all(is_of_scheduler)
}

fn is_plain(decision: &Value) -> bool {
    decision.as_object().is_some_and(|fields| fields.len() == 2)
        && decision["clusterName"].is_string()
        && decision["reason"] == ""
}

// === impl World ===

impl World {
    pub(super) fn put_decision(&mut self, key: &Key, object: Value, now: OffsetDateTime, is_listed: bool) -> Woken {
        let list = self.lists[Of::Decision.index()];
        let mut held = DecisionOnHub { seen_in: list, ..DecisionOnHub::read(&object) };
        let before = self.held.get_mut(key);
        let is_anew = is_listed && before.as_ref().is_some_and(|before| before.seen_in != list);
        let known = before.map(|before| {
            before.seen_in = list;
            &before.version
        });
        if !is_anew && known.is_some_and(|known| *known == held.version || is_older(Some(&held.version), known)) {
            return Woken::new();
        }
        // A list that did not change stays a scheduler's, also under another manager.
        held.is_scheduled |= self.held.get(key).is_some_and(|known| known.is_scheduled && known.lists_as(&held));
        let before = self.held.insert(key.clone(), held.clone());
        Arc::make_mut(&mut self.decisions).put(PlacementDecision::from(object));
        let mut woken = Woken::new();
        for of in before.iter().chain([&held]).filter_map(DecisionOnHub::placement) {
            woken.insert((key.0.clone(), of.clone()));
        }
        let Some(before) = before else {
            return if self.writing.contains(key) { Woken::new() } else { woken };
        };
        let is_list_same = before.lists_as(&held);
        if is_list_same && (&before.labels, &before.owners) == (&held.labels, &held.owners) {
            return Woken::new();
        }
        let writer = held.writer.as_deref().filter(|_| !is_list_same);
        // A list without another manager is not necessarily ours: it may be gone, or another client
        // may use our manager's name.
        let is_as_sent = || !is_list_same && held.is_plain && self.sent.get(key) == Some(&held.clusters);
        // After its own writes, a Placement runs again anyway.
        if writer.is_none() && (self.writing.contains(key) || is_as_sent()) {
            return Woken::new();
        }
        self.note_write(&woken, writer, now);
        woken
    }

    pub(super) fn remove_decision(&mut self, key: &Key, version: Option<&str>, now: OffsetDateTime) -> Woken {
        if self.held.get(key).is_some_and(|known| is_older(version, &known.version)) {
            return Woken::new();
        }
        self.sent.remove(key);
        let Some(before) = self.held.remove(key) else { return Woken::new() };
        Arc::make_mut(&mut self.decisions).remove(&key.0, &key.1);
        if self.writing.contains(key) {
            return Woken::new();
        }
        let woken: Woken = before.placement().map(|of| (key.0.clone(), of.clone())).into_iter().collect();
        self.note_write(&woken, None, now);
        woken
    }

    /// Whether [`World::confirm`] would change anything. Most runs find everything confirmed, and
    /// the write lock keeps all readers out.
    pub fn is_unconfirmed(&self, key: &Key, inputs: u64) -> bool {
        let is_open =
            |name: &String| self.held.get(&(key.0.clone(), name.clone())).is_some_and(|held| !held.is_scheduled);
        self.placement(key).is_some_and(|known| known.inputs == inputs) && self.labelled(key).any(is_open)
    }

    /// Notes that a run with this input chose the clusters that the decisions have: whichever
    /// client wrote them, they are now a scheduler's choice.
    pub fn confirm(&mut self, key: &Key, inputs: u64) {
        if self.placement(key).is_none_or(|known| known.inputs != inputs) {
            return;
        }
        let names: Vec<String> = self.labelled(key).cloned().collect();
        for name in names {
            if let Some(held) = self.held.get_mut(&(key.0.clone(), name)) {
                held.is_scheduled = true;
            }
        }
    }

    /// Marks a decision as being written or removed, so that the watch's event about it is no news.
    /// A later event with a `list` that was sent is no news either, even if the call failed.
    pub fn begin(&mut self, key: &Key, list: Option<&[String]>) {
        self.writing.insert(key.clone());
        if let Some(list) = list {
            self.sent.insert(key.clone(), list.to_vec());
        }
    }

    pub fn end(&mut self, key: &Key) {
        self.writing.remove(key);
    }

    pub fn held(&self, key: &Key) -> Option<&DecisionOnHub> {
        self.held.get(key)
    }

    fn note_write(&mut self, placements: &Woken, writer: Option<&str>, now: OffsetDateTime) {
        for key in placements {
            if let Some(known) = self.placement_mut(key) {
                known.foreign_writes.seen(writer, now);
            }
        }
    }
}
