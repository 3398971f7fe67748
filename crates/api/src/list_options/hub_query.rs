//! Writes the options as the query of a request to the hub.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::{ListOptions, MATCH, NOT_OLDER_THAN, Selectors, WatchOptions};
use crate::selector::label::LabelSelector;

/// A query that is being written.
#[derive(Debug, Default)]
struct Query(String);

// === impl Query ===

impl Query {
    fn put(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        let separator = if self.0.is_empty() { "" } else { "&" };
        let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
        write!(self.0, "{separator}{key}={value}").expect("writing to a String cannot fail");
    }
}

impl ListOptions {
    /// The query for the hub's objects that also have `label`. An empty `label` adds no condition.
    /// Omits the client's label selector if `labels` is false.
    pub fn to_hub(&self, label: &str, labels: bool) -> String {
        let mut query = Query::default();
        self.selectors.put(&mut query, label, labels);
        query.put("resourceVersion", &self.resource_version);
        query.put(MATCH, &self.version_match);
        query.put("continue", &self.token);
        query.put("limit", &self.limit.map(|limit| limit.to_string()).unwrap_or_default());
        query.put("timeoutSeconds", &self.timeout_seconds.map(|seconds| seconds.to_string()).unwrap_or_default());
        query.0
    }
}

impl WatchOptions {
    /// Like [`ListOptions::to_hub`]. Always asks for bookmarks. `timeout_seconds` replaces the
    /// client's own.
    pub fn to_hub(&self, label: &str, labels: bool, timeout_seconds: u64) -> String {
        let mut query = Query::default();
        query.put("watch", "true");
        query.put("allowWatchBookmarks", "true");
        self.selectors.put(&mut query, label, labels);
        query.put("resourceVersion", &self.resource_version);
        if let Some(initial) = self.send_initial_events {
            query.put("sendInitialEvents", if initial { "true" } else { "false" });
            query.put(MATCH, NOT_OLDER_THAN);
        }
        query.put("timeoutSeconds", &timeout_seconds.to_string());
        query.0
    }
}

impl Selectors {
    /// The namespace of the hub's objects is not the namespace of ours, so its selector is not
    /// passed on.
    fn put(&self, query: &mut Query, label: &str, labels: bool) {
        let own = if labels && self.labels != LabelSelector::default() { self.label_text.as_str() } else { "" };
        let separator = if label.is_empty() || own.is_empty() { "" } else { "," };
        query.put("labelSelector", &format!("{label}{separator}{own}"));
        query.put("fieldSelector", &self.fields.only("metadata.name"));
    }
}
