//! What the served kinds have in common: each of them as JSON, as a list, as rows of a Table and as bare metadata.
//!
//! The documents are those of `k8s.io/apiserver/pkg/endpoints/handlers/response.go`. A kind only says what its metadata, its
//! columns and its content are ([`Served`]); which document is made of that is decided by the [`Form`] its reader asked for.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::Serialize;

use crate::accept::{MetaVersion, Representation};
use crate::cluster_gateway::API_VERSION;
use crate::go_text;
use crate::table::{Cell, Column, IncludeObject, Table};

/// An object of a served kind.
pub trait Served {
    /// Plural name of the resource.
    const RESOURCE: &'static str;
    /// Kind of a single object; a list's is this with `List` behind it.
    const KIND: &'static str;
    /// Whether items of a list repeat kind and apiVersion.
    const TYPED_ITEMS: bool;
    const COLUMNS: &'static [Column];

    fn metadata(&self) -> ObjectMeta<'_>;

    /// One for each of [`Served::COLUMNS`].
    fn cells(&self) -> Vec<Cell<'_>>;

    /// The fields after the metadata: `spec` and, where there is one, `status`.
    type Content<'a>: Serialize
    where
        Self: 'a;

    fn content(&self) -> Self::Content<'_>;
}

/// How a reader wants to see objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub representation: Representation,
    /// For Tables only.
    pub include: IncludeObject,
}

/// `metav1.ObjectMeta`, as far as we have it.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectMeta<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    pub name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub uid: &'a str,
    pub resource_version: &'a str,
    /// Null when unknown, as Go writes the zero time.
    pub creation_timestamp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<&'a BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub annotations: Option<&'a BTreeMap<&'static str, &'static str>>,
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, I> {
    kind: String,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    items: Vec<I>,
}

/// An object in any form, to be written by itself or inside a watch event.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Shown<'a, C> {
    Document(Document<'a, C>),
    Metadata(PartialObjectMetadata<'a>),
    Table(Table<'a, C>),
}

// === impl Form ===

impl Form {
    /// The JSON of one object.
    pub fn object<T: Served>(self, object: &T) -> Bytes {
        go_text::json(&self.shown(object, true))
    }

    /// The JSON of a list.
    pub fn list<'a, T: Served + 'a>(self, objects: impl IntoIterator<Item = &'a T>, metadata: ListMeta<'a>) -> Bytes {
        let objects = objects.into_iter();
        match self.representation {
            Representation::Json => go_text::json(&List {
                kind: format!("{}List", T::KIND),
                api_version: API_VERSION,
                metadata,
                items: objects.map(|object| Document::new(object, T::TYPED_ITEMS)).collect(),
            }),
            Representation::Table(version) => {
                go_text::json(&Table::new(objects, metadata, version, self.include, true))
            }
            Representation::Metadata(version) => go_text::json(&List {
                kind: "PartialObjectMetadataList".to_owned(),
                api_version: version.api_version(),
                metadata,
                items: objects.map(|object| PartialObjectMetadata::new(object.metadata(), version)).collect(),
            }),
        }
    }

    /// `columns`: whether a Table defines its columns.
    pub(crate) fn shown<T: Served>(self, object: &T, columns: bool) -> Shown<'_, T::Content<'_>> {
        match self.representation {
            Representation::Json => Shown::Document(Document::new(object, true)),
            Representation::Metadata(version) => {
                Shown::Metadata(PartialObjectMetadata::new(object.metadata(), version))
            }
            Representation::Table(version) => {
                let metadata = ListMeta { resource_version: object.metadata().resource_version, ..ListMeta::default() };
                Shown::Table(Table::new([object], metadata, version, self.include, columns))
            }
        }
    }
}

// === impl Document ===

impl<'a, C> Document<'a, C> {
    /// `typed`: with kind and apiVersion.
    pub(crate) fn new<T: Served<Content<'a> = C>>(object: &'a T, typed: bool) -> Self {
        Self {
            kind: typed.then_some(T::KIND),
            api_version: typed.then_some(API_VERSION),
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
