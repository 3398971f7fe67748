//! How much a work's status tells of its objects.

use time::OffsetDateTime;

use super::conditions::synced;
use super::status::{FeedbackValue, FieldValue, ManifestCondition};
use crate::condition::{self, Condition};
use crate::feedback::Feedback;

/// Bytes of all values and of all messages of a work, each: a status is one object, and an object
/// has a size that the hub takes.
pub const TOLD: usize = 256 * 1024;

/// What there is room for in the status of one work.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    values: usize,
    messages: usize,
}

// === impl Room ===

impl Default for Room {
    fn default() -> Self {
        Self { values: TOLD, messages: TOLD }
    }
}

impl Room {
    /// Drops the values of `manifest`, and cuts its messages, where there is no room for them after
    /// those of the manifests before. `StatusFeedbackSynced` says where values are missing.
    pub fn fit(&mut self, manifest: &mut ManifestCondition, now: OffsetDateTime) {
        let sizes = manifest.status_feedback.values.iter().map(size);
        if let Some(rest) = self.values.checked_sub(sizes.sum()) {
            self.values = rest;
        } else {
            manifest.status_feedback.values.clear();
            condition::set(&mut manifest.conditions, too_much(), now);
        }
        for one in &mut manifest.conditions {
            let most = one.message.floor_char_boundary(self.messages);
            one.message.truncate(most);
            self.messages -= one.message.len();
        }
    }
}

/// `StatusFeedbackSynced` of a manifest whose values find no room.
fn too_much() -> Condition {
    let errors = vec![format!("the values of the work have more than {TOLD} bytes")];
    synced(Some(&Feedback { values: Vec::new(), errors }))
}

fn size(value: &FeedbackValue) -> usize {
    let FieldValue { kind: _, integer: _, string, boolean: _, json_raw } = &value.field_value;
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    VALUE + value.name.len() + text(string) + text(json_raw)
}

/// Bytes of a value beside its texts.
const VALUE: usize = 64;
