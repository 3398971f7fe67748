//! The `meta.k8s.io` Table that kubectl prints.
//!
//! A Table has one row per object. The reader chooses the content of a row besides its cells
//! (`?includeObject=`).

use serde::Serialize;

use crate::accept::MetaVersion;
use crate::object::{Cell, Column, Document, ListMeta, ObjectMeta, PartialObjectMetadata, Served};
use crate::query;
use crate::status::Status;

/// The content of each row besides its cells (`?includeObject=`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// The query parameter `includeObject` is not `None`, `Metadata` or `Object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("includeObject must be None, Metadata or Object")]
pub struct InvalidIncludeObject;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Table<'a, C> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    column_definitions: &'static [Column],
    rows: Vec<Row<'a, C>>,
}

#[derive(Serialize)]
struct Row<'a, C> {
    cells: Vec<Cell<'a>>,
    object: RowObject<'a, C>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowObject<'a, C> {
    None,
    Metadata(PartialObjectMetadata<'a>),
    Object(Box<Document<'a, C>>),
}

// === impl IncludeObject ===

impl IncludeObject {
    pub fn from_query(query: Option<&str>) -> Result<Self, InvalidIncludeObject> {
        match query::first(query, "includeObject").as_deref() {
            None | Some("" | "Metadata") => Ok(Self::Metadata),
            Some("None") => Ok(Self::None),
            Some("Object") => Ok(Self::Object),
            Some(_) => Err(InvalidIncludeObject),
        }
    }
}

// === impl InvalidIncludeObject ===

impl From<InvalidIncludeObject> for Status {
    fn from(error: InvalidIncludeObject) -> Self {
        Self::bad_request(error.to_string())
    }
}

// === impl Table ===

impl<'a, C> Table<'a, C> {
    /// `columns`: whether the Table defines its columns.
    pub(crate) fn new<T: Served<Content<'a> = C> + 'a>(
        objects: impl IntoIterator<Item = &'a T>,
        metadata: ListMeta<'a>,
        version: MetaVersion,
        include: IncludeObject,
        columns: bool,
    ) -> Self {
        let row = |object: &'a T| Row {
            cells: object.cells(),
            object: match include {
                IncludeObject::None => RowObject::None,
                IncludeObject::Metadata => RowObject::Metadata(PartialObjectMetadata::new(object.metadata(), version)),
                IncludeObject::Object => RowObject::Object(Box::new(Document::new(object, true))),
            },
        };
        Self::of::<T>(objects.into_iter().map(row).collect(), metadata, version, columns)
    }

    /// A Table with one row that only has metadata: a bookmark for clients that asked for Tables.
    pub(crate) fn bare<T: Served>(bookmark: ObjectMeta<'a>, version: MetaVersion, columns: bool) -> Self {
        let metadata = ListMeta { resource_version: bookmark.resource_version, ..ListMeta::default() };
        let object = RowObject::Metadata(PartialObjectMetadata::new(bookmark, version));
        let row = Row { cells: vec![Cell::Null; T::COLUMNS.len()], object };
        Self::of::<T>(vec![row], metadata, version, columns)
    }

    fn of<T: Served>(rows: Vec<Row<'a, C>>, metadata: ListMeta<'a>, version: MetaVersion, columns: bool) -> Self {
        Self {
            kind: "Table",
            api_version: version.api_version(),
            metadata,
            column_definitions: if columns { T::COLUMNS } else { &[] },
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::accept::Representation;
    use crate::cluster_gateway::{ClusterGateway, Credentials};
    use crate::health::Health;
    use crate::samples::{certificate_cluster, token_cluster};
    use crate::secret::ClusterSpec;
    use crate::served::Form;

    fn text(json: &Bytes) -> String {
        String::from_utf8(json.to_vec()).expect("JSON is UTF-8")
    }

    fn shown(spec: &ClusterSpec, credentials: Credentials) -> ClusterGateway<'_> {
        ClusterGateway::new(spec, Health::default(), credentials)
    }

    fn render(specs: &[ClusterSpec], version: MetaVersion, include: IncludeObject, credentials: Credentials) -> String {
        let objects: Vec<_> = specs.iter().map(|spec| shown(spec, credentials)).collect();
        let form = Form { representation: Representation::Table(version), include };
        text(&form.list(&objects, ListMeta { resource_version: "42", ..ListMeta::default() }))
    }

    #[test]
    fn tables_with_each_kind_of_row_object() {
        let clusters = [token_cluster("c1"), certificate_cluster("c2")];
        let render = |version, include| render(&clusters, version, include, Credentials::Redacted);
        insta::assert_snapshot!(
            [
                render(MetaVersion::V1, IncludeObject::Metadata),
                render(MetaVersion::V1beta1, IncludeObject::None),
                render(MetaVersion::V1, IncludeObject::Object),
            ]
            .concat()
        );
    }

    #[test]
    fn rows_are_never_null() {
        let empty = render(&[], MetaVersion::V1, IncludeObject::default(), Credentials::Redacted);
        assert!(empty.ends_with("\"rows\":[]}\n"), "{empty}");
    }

    #[test]
    fn rows_show_no_credential_unless_asked() {
        let cluster = [token_cluster("c1")];
        let render = |credentials| render(&cluster, MetaVersion::V1, IncludeObject::Object, credentials);
        assert!(!render(Credentials::Redacted).contains("canary"));
        assert!(render(Credentials::Exposed).contains("canary"));
    }

    #[test]
    fn bare_metadata() {
        let cluster = token_cluster("c1");
        let object = shown(&cluster, Credentials::Exposed);
        let form = |version| Form { representation: Representation::Metadata(version), include: IncludeObject::None };
        let both = [
            form(MetaVersion::V1).object(&object),
            form(MetaVersion::V1beta1).list([&object], ListMeta { resource_version: "42", ..ListMeta::default() }),
        ];
        insta::assert_snapshot!(both.iter().map(text).collect::<String>());
    }

    #[test]
    fn include_object_has_three_values() {
        for (query, expected) in [
            (None, Ok(IncludeObject::Metadata)),
            (Some("limit=500"), Ok(IncludeObject::Metadata)),
            (Some("includeObject=Metadata"), Ok(IncludeObject::Metadata)),
            (Some("includeObject=None"), Ok(IncludeObject::None)),
            (Some("includeObject=Object&includeObject=None"), Ok(IncludeObject::Object)),
            (Some("includeObject=object"), Err(InvalidIncludeObject)),
        ] {
            assert_eq!(IncludeObject::from_query(query), expected, "{query:?}");
        }
    }
}
