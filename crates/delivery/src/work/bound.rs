//! How much a work's status tells of its objects.

use time::OffsetDateTime;

use super::conditions::too_much;
use super::status::{FeedbackValue, FieldValue, ManifestCondition};
use crate::condition;

/// Bytes of all values and of all messages of a work, each: a status is one object, and an object
/// has a size that the hub takes.
pub const TOLD: usize = 256 * 1024;

/// Drops the values of manifests, and cuts their messages, where there are more than [`TOLD`]
/// bytes: from the first manifest on, what there is room for stays. `StatusFeedbackSynced` says
/// where values are missing.
pub fn bound(manifests: &mut [ManifestCondition], now: OffsetDateTime) {
    let (mut values, mut messages) = (TOLD, TOLD);
    for manifest in manifests {
        let sizes = manifest.status_feedback.values.iter().map(size);
        if let Some(rest) = values.checked_sub(sizes.sum()) {
            values = rest;
        } else {
            manifest.status_feedback.values.clear();
            condition::set(&mut manifest.conditions, too_much(), now);
        }
        for one in &mut manifest.conditions {
            let most = one.message.floor_char_boundary(messages);
            one.message.truncate(most);
            messages -= one.message.len();
        }
    }
}

fn size(value: &FeedbackValue) -> usize {
    let FieldValue { kind: _, integer: _, string, boolean: _, json_raw } = &value.field_value;
    let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    VALUE + value.name.len() + text(string) + text(json_raw)
}

/// Bytes of a value beside its texts.
const VALUE: usize = 64;
