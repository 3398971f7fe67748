//! Translates the hub's events of Secrets into events of the clusters in them.
//!
//! A watcher must arrive at the state of a list. So a Secret that is no longer a readable cluster
//! becomes one deletion, if the watcher may have seen it, and a Secret that becomes readable is an
//! addition. All versions are the hub's, so a watcher can continue from any of them, here or at
//! another replica.

use std::collections::HashSet;

use api::hub_object::SecretObject;
use api::list_options::{Selectors, WatchOptions};
use api::served::ObjectMeta;
use api::status::Status;
use api::watch_event::{Change, EventWriter, HubEvent};
use bytes::Bytes;

use super::kinds::Kind;
use super::watch::{Step, Translate};

/// The translator of one watch.
pub struct Clusters<K> {
    writer: EventWriter,
    kind: K,
    selectors: Selectors,
    bookmarks: bool,
    /// Names that this watch has reported as deleted, or never reported, because they cannot be
    /// read.
    hidden: HashSet<String>,
    /// Names that were probably unreadable when the watch began. They only decide between
    /// "modified" and "added": the snapshot may be newer than what the watcher has seen, so a
    /// deletion must still be sent.
    unseen: HashSet<String>,
}

// === impl Clusters ===

impl<K: Kind> Clusters<K> {
    pub fn new(writer: EventWriter, kind: K, options: WatchOptions, unseen: HashSet<String>) -> Self {
        let WatchOptions { selectors, bookmarks, .. } = options;
        Self { writer, kind, selectors, bookmarks, hidden: HashSet::new(), unseen }
    }

    fn change(&mut self, change: Change, secret: &SecretObject) -> Option<Bytes> {
        let metadata = &secret.metadata;
        let name = &metadata.name;
        if !self.selectors.matches_name(name) {
            return None;
        }
        let seen = self.kind.view().read(secret);
        let change = match (change, &seen) {
            (Change::Deleted, _) => {
                self.unseen.remove(name);
                (!self.hidden.remove(name)).then_some(Change::Deleted)
            }
            (change, Ok(_)) => {
                let new = self.hidden.remove(name) | self.unseen.remove(name);
                Some(if new { Change::Added } else { change })
            }
            (change, Err(_)) => {
                self.unseen.remove(name);
                let newly = self.hidden.insert(name.clone());
                (newly && change == Change::Modified).then_some(Change::Deleted)
            }
        }?;
        let object = match &seen {
            Ok(seen) => self.kind.object(&seen.spec, seen.health.clone()),
            Err(_) => K::remnant(ObjectMeta {
                name,
                uid: &metadata.uid,
                resource_version: &metadata.resource_version,
                creation_timestamp: metadata.creation_timestamp.as_deref(),
                ..ObjectMeta::default()
            }),
        };
        Some(self.writer.change(change, &object))
    }
}

impl<K: Kind> Translate for Clusters<K> {
    fn line(&mut self, line: &[u8]) -> Step {
        match HubEvent::<SecretObject>::parse(line) {
            Ok(HubEvent::Change(change, secret)) => self.change(change, &secret).map_or(Step::Nothing, Step::Send),
            Ok(HubEvent::Bookmark { resource_version, initial_events_end }) => {
                if self.bookmarks || initial_events_end {
                    Step::Send(self.writer.bookmark::<K::Object<'_>>(&resource_version, initial_events_end))
                } else {
                    Step::Nothing
                }
            }
            Ok(HubEvent::Error(status)) => Step::Last(EventWriter::error(&status.into_status("secrets", K::RESOURCE))),
            Err(error) => Step::Last(EventWriter::error(&Status::internal_error(&error.to_string()))),
        }
    }
}

#[cfg(test)]
mod tests;
