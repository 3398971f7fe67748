//! `metav1.WatchEvent`: one line of a watch, as the hub writes it and as we do.
//!
//! Written events have the form that the watcher asked for. A Table only defines its columns in the
//! first event, as in `k8s.io/apiserver/pkg/endpoints/handlers/watch.go`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::accept::Representation;
use crate::go_text;
use crate::hub_object::HubMeta;
use crate::hub_status::HubStatus;
use crate::object::{ObjectMeta, PartialObjectMetadata, Served};
use crate::served::Form;
use crate::status::Status;
use crate::table::Table;

/// Annotation on the bookmark that ends the initial events (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The kind of change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Change {
    Added,
    Modified,
    Deleted,
}

/// An event from the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HubEvent<T> {
    Change(Change, T),
    Bookmark {
        resource_version: String,
        /// Whether all objects from before the watch have been sent.
        initial_events_end: bool,
    },
    /// The watch has ended for this reason.
    Error(HubStatus),
}

/// The line is not an event of the watched kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the hub sent a watch event that cannot be read")]
pub struct InvalidEvent;

/// Writes the events of one watch.
#[derive(Debug, Clone)]
pub struct EventWriter {
    form: Form,
    /// Whether no event was written yet.
    first: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Marked {
    #[serde(default)]
    metadata: HubMeta,
}

/// The parts of a line that [`version`] reads.
#[derive(Deserialize)]
struct VersionLine<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: Versioned<'a>,
}

#[derive(Deserialize)]
struct Versioned<'a> {
    #[serde(borrow, default)]
    metadata: VersionMeta<'a>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct VersionMeta<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}

#[derive(Serialize)]
struct Event<T, O> {
    r#type: T,
    object: O,
}

/// The parts of an object in a bookmark.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Bookmark<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ObjectMeta<'a>,
}

// === impl HubEvent ===

impl<T: for<'de> Deserialize<'de>> HubEvent<T> {
    pub fn parse(line: &[u8]) -> Result<Self, InvalidEvent> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|_| InvalidEvent)?;
        let object = line.object.get();
        let change = match &*line.r#type {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "BOOKMARK" => {
                let Marked { metadata } = serde_json::from_str(object).map_err(|_| InvalidEvent)?;
                let initial_events_end =
                    metadata.annotations.get(INITIAL_EVENTS_END).is_some_and(|value| value == "true");
                return Ok(Self::Bookmark { resource_version: metadata.resource_version, initial_events_end });
            }
            "ERROR" => return serde_json::from_str(object).map(Self::Error).map_err(|_| InvalidEvent),
            _ => return Err(InvalidEvent),
        };
        Ok(Self::Change(change, serde_json::from_str(object).map_err(|_| InvalidEvent)?))
    }
}

impl<T> HubEvent<T> {
    /// The same event with another object.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> HubEvent<U> {
        match self {
            Self::Change(kind, object) => HubEvent::Change(kind, change(object)),
            Self::Bookmark { resource_version, initial_events_end } => {
                HubEvent::Bookmark { resource_version, initial_events_end }
            }
            Self::Error(status) => HubEvent::Error(status),
        }
    }
}

/// The resourceVersion of a line's object. `None` for errors and for a line that is not an event.
/// Allocates nothing, because it is read of every event. Other fields are not looked at: one that
/// cannot be read is noticed when the event is parsed.
pub fn version(line: &[u8]) -> Option<u64> {
    // Checked as a whole: the parser of bytes does not look at strings that it skips.
    let line: VersionLine<'_> = serde_json::from_str(std::str::from_utf8(line).ok()?).ok()?;
    match &*line.r#type {
        "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" => line.object.metadata.resource_version.parse().ok(),
        _ => None,
    }
}

// === impl EventWriter ===

impl EventWriter {
    pub fn new(form: Form) -> Self {
        Self { form, first: true }
    }

    pub fn change<T: Served>(&mut self, change: Change, object: &T) -> Bytes {
        let columns = std::mem::take(&mut self.first);
        go_text::json(&Event { r#type: change, object: self.form.shown(object, columns) })
    }

    pub fn bookmark<T: Served>(&mut self, resource_version: &str, initial_events_end: bool) -> Bytes {
        let columns = std::mem::take(&mut self.first);
        let annotations = BTreeMap::from([(INITIAL_EVENTS_END.to_owned(), "true".to_owned())]);
        let annotations = initial_events_end.then_some(&annotations);
        let metadata = ObjectMeta { resource_version, annotations, ..ObjectMeta::default() };
        let r#type = "BOOKMARK";
        match self.form.representation {
            Representation::Json => {
                let object = Bookmark { kind: T::KIND, api_version: T::API_VERSION, metadata };
                go_text::json(&Event { r#type, object })
            }
            Representation::Metadata(version) => {
                go_text::json(&Event { r#type, object: PartialObjectMetadata::new(metadata, version) })
            }
            Representation::Table(version) => {
                let object: Table<'_, T::Content<'_>> = Table::bare::<T>(metadata, version, columns);
                go_text::json(&Event { r#type, object })
            }
        }
    }

    /// The last event of a watch that cannot continue.
    pub fn error(status: &Status) -> Bytes {
        go_text::json(&Event { r#type: "ERROR", object: status })
    }
}

#[cfg(test)]
mod tests;
