//! `meta.k8s.io` views of our resource: the Table that kubectl prints, and bare metadata.
//!
//! Columns and cells are the incumbent's (its `printer.go`); the documents are those of
//! `k8s.io/apiserver/pkg/endpoints/handlers/response.go`.

use bytes::Bytes;
use serde::Serialize;

use crate::accept::MetaVersion;
use crate::cluster_gateway::{ClusterGateway, Credentials, ListMeta, ObjectMeta};
use crate::go_text;
use crate::query;
use crate::secret::ClusterSpec;
use crate::status::Status;

/// What each row carries besides its cells (`?includeObject=`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IncludeObject {
    None,
    #[default]
    Metadata,
    Object,
}

/// The query parameter `includeObject` has another value than `None`, `Metadata` or `Object`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("includeObject must be None, Metadata or Object")]
pub struct InvalidIncludeObject;

/// A Table with one row per cluster. For a single object `resource_version` is the object's own.
pub fn table<'a>(
    clusters: impl IntoIterator<Item = &'a ClusterSpec>,
    resource_version: &str,
    version: MetaVersion,
    include: IncludeObject,
    credentials: Credentials,
) -> Bytes {
    let row = |cluster| Row { cells: cells(cluster), object: RowObject::new(cluster, version, include, credentials) };
    go_text::json(&Table {
        kind: "Table",
        api_version: version.api_version(),
        metadata: ListMeta { resource_version },
        column_definitions: COLUMNS,
        rows: clusters.into_iter().map(row).collect(),
    })
}

/// A `PartialObjectMetadata`.
pub fn metadata(cluster: &ClusterSpec, version: MetaVersion) -> Bytes {
    go_text::json(&PartialObjectMetadata::new(cluster, version))
}

/// A `PartialObjectMetadataList`.
pub fn metadata_list<'a>(
    clusters: impl IntoIterator<Item = &'a ClusterSpec>,
    resource_version: &str,
    version: MetaVersion,
) -> Bytes {
    go_text::json(&PartialObjectMetadataList {
        kind: "PartialObjectMetadataList",
        api_version: version.api_version(),
        metadata: ListMeta { resource_version },
        items: clusters.into_iter().map(|cluster| PartialObjectMetadata::new(cluster, version)).collect(),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Table<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    column_definitions: [Column; 5],
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Column {
    name: &'static str,
    r#type: &'static str,
    format: &'static str,
    description: &'static str,
    /// 0 is always shown, more only by `-o wide`.
    priority: u8,
}

#[derive(Serialize)]
struct Row<'a> {
    cells: [&'a str; 5],
    object: RowObject<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RowObject<'a> {
    None,
    Metadata(PartialObjectMetadata<'a>),
    Object(Box<ClusterGateway<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartialObjectMetadata<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ObjectMeta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PartialObjectMetadataList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    items: Vec<PartialObjectMetadata<'a>>,
}

const COLUMNS: [Column; 5] = [
    Column { format: "name", ..column("Name", "Name of the cluster.") },
    column("Provider", "Provider of the cluster."),
    column("Credential-Type", "How the gateway authenticates to the cluster."),
    column("Endpoint-Type", "How the gateway reaches the cluster."),
    column("Healthy", "Whether the cluster was reported healthy."),
];

const fn column(name: &'static str, description: &'static str) -> Column {
    Column { name, r#type: "string", format: "", description, priority: 0 }
}

fn cells(cluster: &ClusterSpec) -> [&str; 5] {
    [cluster.name.as_str(), "", cluster.credential.kind().as_str(), cluster.endpoint.kind(), "false"]
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

// === impl RowObject ===

impl<'a> RowObject<'a> {
    fn new(cluster: &'a ClusterSpec, version: MetaVersion, include: IncludeObject, credentials: Credentials) -> Self {
        match include {
            IncludeObject::None => Self::None,
            IncludeObject::Metadata => Self::Metadata(PartialObjectMetadata::new(cluster, version)),
            IncludeObject::Object => Self::Object(Box::new(ClusterGateway::new(cluster, credentials).with_type())),
        }
    }
}

// === impl PartialObjectMetadata ===

impl<'a> PartialObjectMetadata<'a> {
    fn new(cluster: &'a ClusterSpec, version: MetaVersion) -> Self {
        Self { kind: "PartialObjectMetadata", api_version: version.api_version(), metadata: ObjectMeta::new(cluster) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{certificate_cluster, token_cluster};

    fn text(json: &Bytes) -> String {
        String::from_utf8(json.to_vec()).expect("JSON is UTF-8")
    }

    #[test]
    fn tables_with_each_kind_of_row_object() {
        let clusters = [token_cluster("c1"), certificate_cluster("c2")];
        let render = |version, include| text(&table(&clusters, "42", version, include, Credentials::Redacted));
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
        let empty = text(&table([], "1", MetaVersion::V1, IncludeObject::default(), Credentials::Redacted));
        assert!(empty.ends_with("\"rows\":[]}\n"), "{empty}");
    }

    #[test]
    fn rows_show_no_credential_unless_asked() {
        let cluster = token_cluster("c1");
        let render = |credentials| text(&table([&cluster], "1", MetaVersion::V1, IncludeObject::Object, credentials));
        assert!(!render(Credentials::Redacted).contains("canary"));
        assert!(render(Credentials::Exposed).contains("canary"));
    }

    #[test]
    fn bare_metadata() {
        let cluster = token_cluster("c1");
        let both = [metadata(&cluster, MetaVersion::V1), metadata_list([&cluster], "42", MetaVersion::V1beta1)];
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
