//! Lists of several members made one, each item marked with its cluster.
//!
//! A list is read as a stream, one item at a time: what a member sends in few bytes must not take
//! many here.

mod mark;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub use self::mark::{Items, marked};

/// Annotation of an item: whose it is (`CacheSourceAnnotationKey` of Karmada's
/// `pkg/apis/cluster/v1alpha1/well_known_constants.go`).
pub const CLUSTER_ANNOTATION: &str = "resource.karmada.io/cached-from-cluster";
/// Items of all members together.
pub const MOST_ITEMS: usize = 100_000;
/// Longest JSON of a Table's columns, in bytes.
const MOST_COLUMNS: usize = 64 << 10;
/// Longest kind, in bytes: it is a DNS label in other letters.
const LONGEST_KIND: usize = 128;

const TABLE: &str = "Table";
/// Heads that are told apart.
const MOST_KINDS: usize = 64;

/// A list being merged.
pub struct Merged {
    head: Head,
    /// JSON of the document so far.
    document: Vec<u8>,
    /// Items in it.
    count: usize,
}

/// A member's list does not fit the others, or is none. Its text follows a cluster's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAlike {
    #[error("its answer is no list like the others'")]
    Kind,
    #[error("all lists together would have more than {MOST_ITEMS} items: ask for less, with a selector")]
    TooMany,
}

/// What was asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `None`: whatever list it is.
    pub kind: Option<&'static str>,
    pub api_version: String,
}

/// What a list is beside its items.
#[derive(Debug, Clone)]
pub struct Head {
    kind: String,
    api_version: String,
    columns: Option<Columns>,
}

#[derive(Debug, Clone)]
struct Columns {
    /// As the member wrote them.
    json: Box<RawValue>,
    /// Descriptions differ between versions of Kubernetes.
    compared: Vec<Column>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A list without its items, which are read over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    column_definitions: Option<&'a RawValue>,
    #[serde(default, rename = "items")]
    _items: IgnoredAny,
    #[serde(default, rename = "rows")]
    _rows: IgnoredAny,
}

// === impl Head ===

impl Head {
    /// What `json` is, if that was asked for.
    pub fn read(json: &[u8], asked: &Asked) -> Result<Self, NotAlike> {
        let outline: Outline<'_> = serde_json::from_slice(json).map_err(|_| NotAlike::Kind)?;
        let Outline { kind, api_version, column_definitions: columns, .. } = outline;
        let is_kind = asked.kind.map_or_else(|| kind.ends_with("List"), |asked| kind == asked);
        if !is_kind || kind.len() > LONGEST_KIND || api_version != asked.api_version {
            return Err(NotAlike::Kind);
        }
        let columns = columns.filter(|_| kind == TABLE).map(Columns::read).transpose()?;
        Ok(Self { kind: kind.into_owned(), api_version: api_version.into_owned(), columns })
    }

    /// The one that most of `heads` are like; of several, the first.
    pub fn most_common<'a>(heads: impl Iterator<Item = &'a Self> + Clone) -> Option<&'a Self> {
        let mut kinds: Vec<(&Self, usize)> = Vec::new();
        for head in heads {
            let is_full = kinds.len() == MOST_KINDS;
            match kinds.iter_mut().find(|(known, _)| *known == head) {
                Some((_, count)) => *count += 1,
                // Each differs from all others: who sends such is no majority.
                None if is_full => {}
                None => kinds.push((head, 1)),
            }
        }
        kinds.into_iter().rev().max_by_key(|(_, count)| *count).map(|(head, _)| head)
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        let columns = self.columns.as_ref().map(|columns| &columns.compared);
        self.kind == other.kind
            && self.api_version == other.api_version
            && columns == other.columns.as_ref().map(|columns| &columns.compared)
    }
}

impl Columns {
    fn read(json: &RawValue) -> Result<Self, NotAlike> {
        if json.get().len() > MOST_COLUMNS {
            return Err(NotAlike::Kind);
        }
        let compared: Option<Vec<Column>> = serde_json::from_str(json.get()).map_err(|_| NotAlike::Kind)?;
        Ok(Self { json: json.to_owned(), compared: compared.unwrap_or_default() })
    }
}

// === impl Merged ===

impl Merged {
    /// `bytes`: of all lists that will be added.
    pub fn new(head: Head, bytes: usize) -> Self {
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let columns = head.columns.as_ref().map(|columns| format!("\"columnDefinitions\":{},", columns.json.get()));
        let columns = columns.unwrap_or_default();
        let items = if head.kind == TABLE { "rows" } else { "items" };
        let (kind, version) = (text(&head.kind), text(&head.api_version));
        // It has no version: each member has its own.
        let begin = format!(
            "{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{{\"resourceVersion\":\"\"}},{columns}\"{items}\":["
        );
        let mut document = Vec::with_capacity(begin.len() + bytes);
        document.extend_from_slice(begin.as_bytes());
        Self { head, document, count: 0 }
    }

    /// Adds the list `json` that `cluster` answered. Nothing of it is added if it does not fit.
    pub fn add(&mut self, cluster: &str, head: &Head, json: &[u8]) -> Result<(), NotAlike> {
        if *head != self.head {
            return Err(NotAlike::Kind);
        }
        let (before, count) = (self.document.len(), self.count);
        let is_table = self.head.kind == TABLE;
        let read = Items { cluster, is_table, out: &mut self.document, count: &mut self.count }.read(json);
        if read.is_err() {
            let is_full = self.count > MOST_ITEMS;
            self.document.truncate(before);
            self.count = count;
            return Err(if is_full { NotAlike::TooMany } else { NotAlike::Kind });
        }
        Ok(())
    }

    pub fn document(mut self) -> Vec<u8> {
        self.document.extend_from_slice(b"]}\n");
        self.document
    }
}

#[cfg(test)]
mod tests;
