//! The query parameters of a list or a watch.
//!
//! They are checked with the messages of `ValidateListOptions`
//! (`k8s.io/apimachinery/pkg/apis/meta/internalversion/validation/validation.go`) and never
//! ignored. Otherwise a client that expects an exact version, or waits for initial events, would
//! fail silently. The hub gets the valid options and defines their meaning. Without a hub, a list
//! comes whole from memory, and options that need more are refused ([`ListOptions::from_memory`]).

mod error;
mod hub_query;

use std::borrow::Cow;
use std::collections::BTreeMap;

pub use self::error::InvalidListOptions;
use crate::query;
use crate::selector::field::FieldSelector;
use crate::selector::label::LabelSelector;

/// The objects that a reader wants.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selectors {
    labels: LabelSelector,
    fields: FieldSelector,
    /// The label selector as it was sent, for the hub.
    label_text: String,
}

/// The options of a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListOptions {
    pub selectors: Selectors,
    /// Empty if absent, like the texts below.
    pub resource_version: String,
    /// `resourceVersionMatch`
    pub version_match: String,
    /// `continue`: where the page begins.
    pub token: String,
    pub limit: Option<i64>,
    pub timeout_seconds: Option<i64>,
}

/// The options of a watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchOptions {
    pub selectors: Selectors,
    /// Empty if absent.
    pub resource_version: String,
    /// Whether the client asked for bookmarks.
    pub bookmarks: bool,
    pub send_initial_events: Option<bool>,
    pub timeout_seconds: Option<i64>,
}

const MATCH: &str = "resourceVersionMatch";
const NOT_OLDER_THAN: &str = "NotOlderThan";
const EXACT: &str = "Exact";

// === impl Selectors ===

impl Selectors {
    fn from_query(query: Option<&str>) -> Result<Self, InvalidListOptions> {
        let label_text = text(query, "labelSelector").into_owned();
        let labels = LabelSelector::parse(&label_text)?;
        let fields = FieldSelector::parse(&text(query, "fieldSelector"))?;
        if let Some(unknown) = fields.fields().find(|field| !matches!(*field, "metadata.name" | "metadata.namespace")) {
            return Err(InvalidListOptions::UnknownField(unknown.to_owned()));
        }
        Ok(Self { labels, fields, label_text })
    }

    /// Whether both selectors match an object.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        self.matches_name(name) && self.labels.matches(labels)
    }

    /// Whether there is a label selector.
    pub fn concern_labels(&self) -> bool {
        self.labels != LabelSelector::default()
    }

    /// Whether the field selector matches an object of this name. Our objects have no namespace: a
    /// selector for one matches nothing.
    pub fn matches_name(&self, name: &str) -> bool {
        self.fields.matches(|field| if field == "metadata.name" { name } else { "" })
    }
}

// === impl ListOptions ===

impl ListOptions {
    pub fn from_query(query: Option<&str>) -> Result<Self, InvalidListOptions> {
        let options = Self {
            selectors: Selectors::from_query(query)?,
            resource_version: text(query, "resourceVersion").into_owned(),
            version_match: text(query, MATCH).into_owned(),
            token: text(query, "continue").into_owned(),
            limit: number(query, "limit")?,
            timeout_seconds: number(query, "timeoutSeconds")?,
        };
        if present(query, "sendInitialEvents") {
            return forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list");
        }
        check_version(&options.resource_version)?;
        options.check_match()?;
        Ok(options)
    }

    fn check_match(&self) -> Result<(), InvalidListOptions> {
        match &*self.version_match {
            "" => return Ok(()),
            _ if self.resource_version.is_empty() => {
                return forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided");
            }
            _ if !self.token.is_empty() => {
                return forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided");
            }
            _ => {}
        }
        match &*self.version_match {
            EXACT if self.resource_version == "0" => {
                forbidden(MATCH, "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
            }
            EXACT | NOT_OLDER_THAN => Ok(()),
            _ => Err(InvalidListOptions::NotSupported(MATCH, "supported values: \"Exact\", \"NotOlderThan\", \"\"")),
        }
    }

    /// For lists from memory, which are complete and current. Refuses options for any other list.
    pub fn from_memory(self) -> Result<Selectors, InvalidListOptions> {
        if !self.token.is_empty() {
            return Err(InvalidListOptions::Continue);
        }
        if self.version_match == EXACT {
            return Err(InvalidListOptions::Exact);
        }
        Ok(self.selectors)
    }
}

// === impl WatchOptions ===

impl WatchOptions {
    pub fn from_query(query: Option<&str>) -> Result<Self, InvalidListOptions> {
        let options = Self {
            selectors: Selectors::from_query(query)?,
            resource_version: text(query, "resourceVersion").into_owned(),
            bookmarks: query::flag(query, "allowWatchBookmarks"),
            send_initial_events: present(query, "sendInitialEvents").then(|| query::flag(query, "sendInitialEvents")),
            timeout_seconds: number(query, "timeoutSeconds")?,
        };
        check_version(&options.resource_version)?;
        options.check_match(&text(query, MATCH), &text(query, "continue"))?;
        Ok(options)
    }

    /// `validateWatchOptions`.
    fn check_match(&self, version_match: &str, token: &str) -> Result<(), InvalidListOptions> {
        match (self.send_initial_events, version_match) {
            (None, "") => Ok(()),
            (None, _) => {
                forbidden(MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
            }
            (Some(_), NOT_OLDER_THAN) if token.is_empty() => Ok(()),
            (Some(_), NOT_OLDER_THAN) => {
                forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided")
            }
            (Some(_), _) => forbidden(MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
        }
    }

    /// Whether the watch begins with the existing objects, as if they had just been added.
    pub fn wants_initial_events(&self) -> bool {
        self.send_initial_events.unwrap_or_else(|| matches!(&*self.resource_version, "" | "0"))
    }

    /// Whether a bookmark must mark the end of the initial events.
    pub fn wants_their_end(&self) -> bool {
        self.send_initial_events == Some(true)
    }
}

fn text<'a>(query: Option<&'a str>, key: &str) -> Cow<'a, str> {
    query::first(query, key).unwrap_or_default()
}

fn present(query: Option<&str>, key: &str) -> bool {
    query::first(query, key).is_some()
}

/// An absent or empty number is `None`, as for the callers of
/// `runtime.Convert_Slice_string_To_int64`.
fn number(query: Option<&str>, key: &'static str) -> Result<Option<i64>, InvalidListOptions> {
    let text = text(query, key);
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(|_| InvalidListOptions::Number(key)) }
}

fn check_version(version: &str) -> Result<(), InvalidListOptions> {
    if version.bytes().all(|byte| byte.is_ascii_digit()) { Ok(()) } else { Err(InvalidListOptions::ResourceVersion) }
}

fn forbidden<T>(field: &'static str, message: &'static str) -> Result<T, InvalidListOptions> {
    Err(InvalidListOptions::Forbidden(field, message))
}

#[cfg(test)]
mod tests;
