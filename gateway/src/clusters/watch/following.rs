//! Follows one list and watch of Secrets.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use api::secret::SecretView;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::Event;
use tokio::time::Instant;

use super::COMPLAIN_EVERY;
use crate::clusters::Registry;

/// A list without an answer for this long is started again. Longer than the back-off between
/// attempts.
pub(super) const LIST_WITHIN: Duration = Duration::from_secs(90);
/// Longest silence of a watch; the watcher asks the hub to end it after 290 s.
pub(super) const WATCH_WITHIN: Duration = Duration::from_mins(10);

pub(super) struct Following {
    pub(super) registry: Registry,
    /// The names of a list that is not complete yet.
    pub(super) listed: Option<HashSet<String>>,
    pub(super) complained: Option<Instant>,
}

// === impl Following ===

impl Following {
    pub(super) fn event(&mut self, event: Event<Secret>) {
        match event {
            Event::Init => self.listed = Some(HashSet::new()),
            Event::InitApply(secret) => {
                self.listed.get_or_insert_default().extend(secret.metadata.name.clone());
                apply(&mut self.registry, secret);
            }
            Event::InitDone => {
                self.registry.retain(&self.listed.take().unwrap_or_default());
                self.registry.relocate();
                self.registry.publish(true);
            }
            Event::Apply(secret) => {
                apply(&mut self.registry, secret);
                self.registry.publish(true);
            }
            Event::Delete(secret) => {
                self.registry.saw_resource_version(secret.metadata.resource_version.as_deref().unwrap_or_default());
                self.registry.remove(secret.metadata.name.as_deref().unwrap_or_default());
                self.registry.publish(true);
            }
        }
    }

    /// During a list, it waits for the list's end.
    pub(super) fn relocate(&mut self) {
        if self.listed.is_none() && self.registry.relocate() {
            self.registry.publish(true);
        }
    }

    pub(super) fn complain(&mut self, namespace: &str, error: &str) {
        if self.complained.is_none_or(|last| last.elapsed() >= COMPLAIN_EVERY) {
            self.complained = Some(Instant::now());
            tracing::warn!(namespace, error, "cannot watch cluster Secrets on the hub, trying again");
        }
    }
}

fn apply(registry: &mut Registry, secret: Secret) {
    let empty = BTreeMap::new();
    let metadata = &secret.metadata;
    let data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0.to_string());
    registry.saw_resource_version(metadata.resource_version.as_deref().unwrap_or_default());
    registry.apply(&SecretView {
        name: metadata.name.as_deref().unwrap_or_default(),
        uid: metadata.uid.as_deref().unwrap_or_default(),
        resource_version: metadata.resource_version.as_deref().unwrap_or_default(),
        creation_timestamp: created.as_deref(),
        labels: metadata.labels.as_ref().unwrap_or(&empty),
        annotations: metadata.annotations.as_ref().unwrap_or(&empty),
        data: &data,
    });
}
