//! The documents that all served kinds have: an object as JSON, a list, the rows of a Table, and
//! the metadata alone.
//!
//! The documents are those of `k8s.io/apiserver/pkg/endpoints/handlers/response.go`. A kind only
//! defines its metadata, its columns and its content ([`Served`]). The reader's [`Form`] decides
//! which document they become.

use bytes::Bytes;
use serde::Serialize;

use crate::accept::Representation;
use crate::go_text;
use crate::object::{Document, PartialObjectMetadata};
use crate::table::{IncludeObject, Table};

pub use crate::object::{ListMeta, ObjectMeta, Served};

/// The form in which a reader wants objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Form {
    pub representation: Representation,
    /// For Tables only.
    pub include: IncludeObject,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, I> {
    kind: String,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    items: Vec<I>,
}

/// An object in any form, to be written alone or in a watch event.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Rendered<'a, C> {
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
                api_version: T::API_VERSION,
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
    pub(crate) fn shown<T: Served>(self, object: &T, columns: bool) -> Rendered<'_, T::Content<'_>> {
        match self.representation {
            Representation::Json => Rendered::Document(Document::new(object, true)),
            Representation::Metadata(version) => {
                Rendered::Metadata(PartialObjectMetadata::new(object.metadata(), version))
            }
            Representation::Table(version) => {
                let metadata = ListMeta { resource_version: object.metadata().resource_version, ..ListMeta::default() };
                Rendered::Table(Table::new([object], metadata, version, self.include, columns))
            }
        }
    }
}
