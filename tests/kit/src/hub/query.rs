//! The query of a list or watch call (`metav1.ListOptions`), parsed once.

use std::time::Duration;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::selector::{FieldSelector, LabelSelector};

/// Length of a watch whose caller names none (kube-apiserver: between 30 and 60 minutes).
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// Fields by which the objects of this hub can be selected, besides name and namespace.
const NO_FIELDS: &[&str] = &[];

/// List options. An unknown parameter is ignored, as a real hub does.
#[derive(Clone, Debug)]
pub(super) struct Query {
    pub(super) watch: bool,
    pub(super) filter: Filter,
    pub(super) limit: Option<usize>,
    pub(super) continue_after: Option<String>,
    /// Empty when absent.
    pub(super) resource_version: String,
    pub(super) version_match: Option<String>,
    pub(super) bookmarks: bool,
    pub(super) send_initial_events: Option<bool>,
    pub(super) timeout: Duration,
}

/// Which objects a caller wants.
#[derive(Clone, Debug, Default)]
pub(super) struct Filter {
    pub(super) namespace: Option<String>,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
}

// === impl Query ===

impl Query {
    /// Parses a raw query for the objects of `namespace` (of all when `None`). An error is the
    /// message of a 400.
    pub(super) fn parse(raw: &str, namespace: Option<String>) -> Result<Self, String> {
        let mut query = Self {
            watch: false,
            filter: Filter { namespace, ..Filter::default() },
            limit: None,
            continue_after: None,
            resource_version: String::new(),
            version_match: None,
            bookmarks: false,
            send_initial_events: None,
            timeout: DEFAULT_TIMEOUT,
        };
        for pair in raw.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            query.set(key, &decode(value))?;
        }
        Ok(query)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|error| format!("{key}: {error}"));
        match key {
            "watch" => self.watch = is_true(value),
            "labelSelector" => self.filter.labels = LabelSelector::parse(value).map_err(|error| error.to_string())?,
            "fieldSelector" => {
                self.filter.fields = FieldSelector::parse(value, NO_FIELDS).map_err(|error| error.to_string())?;
            }
            "limit" => self.limit = usize::try_from(number()?).ok().filter(|limit| *limit > 0),
            "continue" => self.continue_after = Some(value.to_owned()).filter(|token| !token.is_empty()),
            "resourceVersion" => value.clone_into(&mut self.resource_version),
            "resourceVersionMatch" => self.version_match = Some(value.to_owned()),
            "allowWatchBookmarks" => self.bookmarks = is_true(value),
            "sendInitialEvents" => self.send_initial_events = Some(is_true(value)),
            "timeoutSeconds" => self.timeout = Duration::from_secs(number()?),
            _ => {}
        }
        Ok(())
    }
}

/// Kubernetes' conversion of a query parameter to a boolean
/// (`runtime.Convert_Slice_string_To_bool`).
fn is_true(value: &str) -> bool {
    !matches!(value.to_ascii_lowercase().as_str(), "false" | "0")
}

fn decode(value: &str) -> String {
    percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
}

// === impl Filter ===

impl Filter {
    pub(super) fn matches(&self, object: &Value) -> bool {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.namespace.as_deref().is_none_or(|wanted| wanted == namespace)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }
}
