//! Ends registrations: judges names when they are due, and removes their Secrets.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ObjectReference;
use register::claims::{Object, Step};
use tokio::time::sleep;

use super::state::{HeldSecret, Registrations};
use super::{Registrar, wake};
use crate::events::Reason;
use crate::metrics::Operation;

/// Concurrent removals.
const AT_ONCE: usize = 16;
/// Wait after a removal that failed.
const AGAIN_AFTER: Duration = Duration::from_secs(2);

// === impl Registrar ===

impl Registrar {
    /// Judges names when they are due. Never ends.
    pub async fn keep_time(&self) {
        loop {
            let next = {
                let mut state = self.state.lock();
                for name in state.take_due(self.now()) {
                    self.settle(&mut state, &name);
                    if state.delayed.contains(&name) {
                        self.tell_delayed(&state, &name);
                    }
                }
                for source in state.sources.keys() {
                    self.metrics.removals_held(source, state.delayed_of(source));
                }
                state.next_due()
            };
            let due = async {
                match next {
                    Some(moment) => sleep(moment.saturating_sub(self.now())).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = due => {}
                () = self.due.notified() => {}
            }
        }
    }

    fn tell_delayed(&self, state: &Registrations, name: &str) {
        let note = "the object of this cluster disappeared together with more objects of its source than \
                    --source-removal-limit allows, or the source's list no longer has any of its clusters: the \
                    cluster stays for 10 minutes";
        tracing::warn!(cluster = name, "{note}");
        let secret = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("Secret".to_owned()),
            namespace: Some(self.secrets.namespace().to_owned()),
            name: Some(name.to_owned()),
            uid: state.held.get(name).map(|held| held.uid.clone()),
            ..ObjectReference::default()
        };
        self.events.publish(secret, Reason::RemovalHeld, note.to_owned());
    }

    /// Removes Secrets that no object registers any more. Never ends.
    pub async fn remove_all(&self) {
        let ends = self.ends.clone().stream();
        ends.for_each_concurrent(AT_ONCE, |(_, name)| async move { self.remove(&name).await }).await;
    }

    async fn remove(&self, name: &str) {
        let Some((held, object)) = self.begin_removal(name) else { return };
        let outcome = self.secrets.remove(name, (&held.uid, &held.version), (self.may_write)()).await;
        let mut state = self.state.lock();
        let waiting = state.busy.remove(name).unwrap_or_default();
        match outcome {
            Ok(()) => {
                if state.held.get(name).is_some_and(|now| now.uid == held.uid) {
                    state.held.remove(name);
                }
                self.metrics.wrote(object.source, Operation::Delete);
                self.metrics.ended(name);
                tracing::info!(
                    source = object.source,
                    object = object.reference,
                    cluster = name,
                    "the cluster's Secret is removed, because its object is gone"
                );
                let now = self.now();
                state.forget_absences(now);
            }
            Err(error) => {
                tracing::warn!(%error, cluster = name, "the cluster's Secret is not removed yet");
                let again = self.now() + AGAIN_AFTER;
                state.due.insert((again, name.to_owned()));
                self.due.notify_one();
                for object in &waiting {
                    wake(&state, object);
                }
                return; // to judge the name now would repeat the removal at once
            }
        }
        for object in waiting {
            wake(&state, &object);
        }
        self.settle(&mut state, name);
    }

    /// Judges once more, because the object may have come back, and marks the name as busy.
    fn begin_removal(&self, name: &str) -> Option<(HeldSecret, Object)> {
        let mut state = self.state.lock();
        if state.busy.contains_key(name) || state.judge(name, self.now()).step != Step::Remove {
            return None;
        }
        let held = state.held.get(name)?.clone();
        let object = held.origin.as_ref()?.object.clone();
        state.busy.insert(name.to_owned(), BTreeSet::new());
        Some((held, object))
    }
}
