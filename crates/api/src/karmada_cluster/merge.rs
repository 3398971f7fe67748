//! Merges the lists of several members into one, with each item marked with its cluster.
//!
//! Reads a list as a stream, one item at a time: a few bytes from a member must not take up much
//! memory here.

mod mark;

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

pub use self::mark::{Items, marked};

/// Annotation of an item: the name of its cluster (`CacheSourceAnnotationKey` of Karmada's
/// `pkg/apis/cluster/v1alpha1/well_known_constants.go`).
pub const CLUSTER_ANNOTATION: &str = "resource.karmada.io/cached-from-cluster";
/// Most items of all members together.
pub const MOST_ITEMS: usize = 100_000;
/// Longest JSON of a Table's columns, in bytes.
const MOST_COLUMNS: usize = 64 << 10;
/// Longest kind, in bytes: a kind is a DNS label in mixed case.
const LONGEST_KIND: usize = 128;

const TABLE: &str = "Table";
/// What comes after the items.
const END: &[u8] = b"]}\n";
/// Most different heads that are counted.
const MOST_KINDS: usize = 64;

/// A list that is being merged.
pub struct Merged {
    head: Head,
    /// The JSON of the document so far.
    document: Vec<u8>,
    /// Number of items in the document.
    count: usize,
}

/// A member's list differs from the others, or is not a list. The text follows a cluster's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAlike {
    #[error("its answer is not a list like the others'")]
    Kind,
    #[error("all lists together would have more than {MOST_ITEMS} items: ask for less, with a selector")]
    TooMany,
}

/// The list that the request asked for.
#[derive(Debug, Clone)]
pub struct Asked {
    /// `None`: a list of any kind.
    pub kind: Option<&'static str>,
    pub api_version: String,
}

/// A list's fields except its items.
#[derive(Debug, Clone)]
pub struct Head {
    kind: String,
    api_version: String,
    columns: Option<Columns>,
}

#[derive(Debug, Clone)]
struct Columns {
    /// The columns as the member wrote them.
    json: Box<RawValue>,
    /// The columns for the comparison, without descriptions, which differ between versions of
    /// Kubernetes.
    compared: Vec<Column>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Column {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

/// A list without its items, which are skipped.
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
    /// The head of the list `json`. Fails if the request asked for another.
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

    /// The most common one of `heads`. The first of equally common ones.
    pub fn most_common<'a>(heads: impl Iterator<Item = &'a Self> + Clone) -> Option<&'a Self> {
        let mut kinds: Vec<(&Self, usize)> = Vec::new();
        for head in heads {
            let is_full = kinds.len() == MOST_KINDS;
            match kinds.iter_mut().find(|(known, _)| *known == head) {
                Some((_, count)) => *count += 1,
                // Each of these differs from all others, so its sender is not in the majority.
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
    /// `bytes`: the length of all lists to be added.
    pub fn new(head: Head, bytes: usize) -> Self {
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        let columns = head.columns.as_ref().map(|columns| format!("\"columnDefinitions\":{},", columns.json.get()));
        let columns = columns.unwrap_or_default();
        let items = if head.kind == TABLE { "rows" } else { "items" };
        let (kind, version) = (text(&head.kind), text(&head.api_version));
        // The list has no resourceVersion, because each member has its own.
        let begin = format!(
            "{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{{\"resourceVersion\":\"\"}},{columns}\"{items}\":["
        );
        let mut document = Vec::with_capacity(begin.len() + bytes);
        document.extend_from_slice(begin.as_bytes());
        Self { head, document, count: 0 }
    }

    /// Adds `cluster`'s list `json`. Adds nothing if it does not fit.
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

    /// Memory of the document so far.
    pub fn capacity(&self) -> usize {
        self.document.capacity()
    }

    pub fn document(mut self) -> Vec<u8> {
        self.document.reserve_exact(END.len());
        self.document.extend_from_slice(END);
        // Lists that were not added leave their part empty.
        self.document.shrink_to_fit();
        self.document
    }
}

#[cfg(test)]
mod tests;
