//! An object of a served kind: the properties of its kind, and the two documents that contain one
//! object only.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::API_VERSION;
use crate::accept::MetaVersion;

/// An object of a served kind.
pub trait Served {
    /// Plural name of the resource.
    const RESOURCE: &'static str;
    /// Kind of a single object. The list's kind is this plus `List`.
    const KIND: &'static str;
    /// `apiVersion` of its documents.
    const API_VERSION: &'static str = API_VERSION;
    /// Whether the items of a list repeat kind and apiVersion.
    const TYPED_ITEMS: bool;
    const COLUMNS: &'static [Column];

    fn metadata(&self) -> ObjectMeta<'_>;

    /// One cell per column of [`Served::COLUMNS`].
    fn cells(&self) -> Vec<Cell<'_>>;

    /// The fields after the metadata: `spec` and, if there is one, `status`.
    type Content<'a>: Serialize
    where
        Self: 'a;

    fn content(&self) -> Self::Content<'_>;
}

/// `metav1.ObjectMeta`, limited to the fields that we have.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: &'a str,
    pub resource_version: &'a str,
    /// Null if unknown, as Go writes the zero time.
    pub creation_timestamp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<&'a BTreeMap<String, String>>,
}

/// `metav1.ListMeta`.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ListMeta<'a> {
    /// Must not be empty: informers watch from here.
    pub resource_version: &'a str,
    /// Where the next page begins.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub next: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remaining_item_count: Option<i64>,
}

/// `metav1.TableColumnDefinition`.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Column {
    pub name: &'static str,
    /// An OpenAPI type.
    pub r#type: &'static str,
    /// An OpenAPI format, or `name` for the column with the object's name.
    pub format: &'static str,
    pub description: &'static str,
    /// 0 is always shown. A higher number is only shown by `-o wide`.
    pub priority: u8,
}

/// The value of one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    Text(&'a str),
    Owned(String),
    Flag(bool),
    Null,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document<'a, C> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    metadata: ObjectMeta<'a>,
    #[serde(flatten)]
    content: C,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PartialObjectMetadata<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ObjectMeta<'a>,
}

// === impl Column ===

impl Column {
    /// A column of text that is always shown.
    pub const fn text(name: &'static str, description: &'static str) -> Self {
        Self { name, r#type: "string", format: "", description, priority: 0 }
    }
}

// === impl Document ===

impl<'a, C> Document<'a, C> {
    /// `typed`: whether it has kind and apiVersion.
    pub(crate) fn new<T: Served<Content<'a> = C>>(object: &'a T, typed: bool) -> Self {
        Self {
            kind: typed.then_some(T::KIND),
            api_version: typed.then_some(T::API_VERSION),
            metadata: object.metadata(),
            content: object.content(),
        }
    }
}

// === impl PartialObjectMetadata ===

impl<'a> PartialObjectMetadata<'a> {
    pub(crate) fn new(metadata: ObjectMeta<'a>, version: MetaVersion) -> Self {
        Self { kind: "PartialObjectMetadata", api_version: version.api_version(), metadata }
    }
}
