//! Limits what a work's status reports of its objects.

use time::OffsetDateTime;

use super::conditions::synced;
use super::status::{FeedbackValue, FieldValue, ManifestCondition};
use crate::condition::{self, Condition};
use crate::feedback::Feedback;

/// Most bytes of all values of a work, and as many of all its messages: a status is part of one
/// object, and the hub limits an object's size.
pub const TOLD: usize = 256 * 1024;

/// The room that is left in the status of one work.
#[derive(Debug, Clone, Copy)]
pub struct BytesLeft {
    values: usize,
    messages: usize,
}

// === impl BytesLeft ===

impl Default for BytesLeft {
    fn default() -> Self {
        Self { values: TOLD, messages: TOLD }
    }
}

impl BytesLeft {
    /// Drops the values of `manifest`, and cuts its messages, if those of the manifests before
    /// leave no room for them. `StatusFeedbackSynced` says where values are missing.
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

/// `StatusFeedbackSynced` of a manifest without room for its values.
fn too_much() -> Condition {
    let errors = vec![format!("the values of the work have more than {TOLD} bytes")];
    synced(Some(&Feedback { values: Vec::new(), errors }))
}

fn size(value: &FeedbackValue) -> usize {
    let FieldValue { kind: _, integer: _, string, boolean: _, json_raw } = &value.field_value;
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    VALUE + value.name.len() + text(string) + text(json_raw)
}

/// Bytes of a value besides its texts.
const VALUE: usize = 64;
