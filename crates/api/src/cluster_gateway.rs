//! `ClusterGateway` as clients read it: a cluster's Secret without its credentials.
//!
//! The field names and their order are those of the Go cluster-gateway (its
//! `clustergateway_types.go`). `metadata` also has a real uid and resourceVersion. The Go one lacks
//! these, and no informer works without them. Credentials are omitted unless the operator asked for
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::ExposeSecret;
use serde::Serialize;

use crate::health::Health;
use crate::object::{Cell, Column, ObjectMeta, Served};
use crate::secret::{ClusterEndpoint, ClusterSpec, ConstEndpoint as Fixed, Credential, ProxyUrl, Trust};

/// Kind of a single object.
pub const KIND: &str = "ClusterGateway";
/// Plural name of the resource.
pub const RESOURCE: &str = "clustergateways";

/// Whether a served object shows the cluster's credential.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Only the credential's type.
    #[default]
    Redacted,
    /// Like the Go cluster-gateway: a reader of the object may use the credential.
    Exposed,
}

/// One object to be written. Not `Debug`, because it may hold an exposed credential.
pub struct ClusterGateway<'a> {
    metadata: ObjectMeta<'a>,
    /// `None` for a deleted object with unknown content.
    spec: Option<&'a ClusterSpec>,
    health: Health,
    credentials: Credentials,
}

/// The fields after the metadata.
#[derive(Serialize)]
pub struct Content<'a> {
    spec: Spec<'a>,
    status: Health,
}

#[derive(Serialize)]
struct Spec<'a> {
    /// Always present and always empty: the Go cluster-gateway reads it.
    provider: &'static str,
    access: Access<'a>,
}

#[derive(Serialize)]
struct Access<'a> {
    /// Null for a deleted object with unknown content: the Go cluster-gateway's type has a pointer
    /// here.
    endpoint: Option<EndpointField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credential: Option<CredentialField<'a>>,
}

#[derive(Serialize)]
struct EndpointField {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#const: Option<ConstEndpoint>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ConstEndpoint {
    address: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_bundle: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    insecure: bool,
    #[serde(rename = "proxy-url", skip_serializing_if = "Option::is_none")]
    proxy_url: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CredentialField<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    service_account_token: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x509: Option<X509>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct X509 {
    certificate: String,
    private_key: String,
}

// === impl ClusterGateway ===

impl<'a> ClusterGateway<'a> {
    pub fn new(spec: &'a ClusterSpec, health: Health, credentials: Credentials) -> Self {
        let metadata = ObjectMeta {
            name: spec.name.as_str(),
            uid: &spec.uid,
            resource_version: &spec.resource_version,
            creation_timestamp: spec.creation_timestamp.as_deref(),
            ..ObjectMeta::default()
        };
        Self { metadata, spec: Some(spec), health, credentials }
    }

    /// The remnant of an object that exists no more or cannot be read: enough to remove it from a
    /// client's store.
    pub fn remnant(metadata: ObjectMeta<'a>) -> Self {
        Self { metadata, spec: None, health: Health::default(), credentials: Credentials::Redacted }
    }
}

impl Served for ClusterGateway<'_> {
    const RESOURCE: &'static str = RESOURCE;
    const KIND: &'static str = KIND;
    const TYPED_ITEMS: bool = false;
    const COLUMNS: &'static [Column] = &[
        Column { format: "name", ..Column::text("Name", "Name of the cluster.") },
        Column::text("Provider", "Provider of the cluster."),
        Column::text("Credential-Type", "How the gateway authenticates to the cluster."),
        Column::text("Endpoint-Type", "How the gateway reaches the cluster."),
        Column::text("Healthy", "Whether the cluster was reported healthy; Unknown if it was not reported."),
    ];

    fn metadata(&self) -> ObjectMeta<'_> {
        self.metadata
    }

    /// The cells of the Go cluster-gateway (its `printer.go`). Clusters without reported health
    /// differ: there it prints `false`.
    fn cells(&self) -> Vec<Cell<'_>> {
        let credential = self.spec.map_or("<none>", |spec| spec.credential.kind().as_str());
        let endpoint = self.spec.map_or("", |spec| spec.endpoint.kind());
        let is_unknown = self.spec.is_some_and(|spec| spec.healthy.is_none()) && self.health.healthy_reason.is_empty();
        let healthy = match self.health.healthy {
            true => "true",
            false if is_unknown => "Unknown",
            false => "false",
        };
        [self.metadata.name, "", credential, endpoint, healthy].map(Cell::Text).into()
    }

    type Content<'a>
        = Content<'a>
    where
        Self: 'a;

    fn content(&self) -> Content<'_> {
        let endpoint = self.spec.map(|spec| EndpointField::new(spec, self.credentials));
        let credential = self.spec.map(|spec| CredentialField::new(&spec.credential, self.credentials));
        Content { spec: Spec { provider: "", access: Access { endpoint, credential } }, status: self.health.clone() }
    }
}

// === impl EndpointField ===

impl EndpointField {
    fn new(cluster: &ClusterSpec, credentials: Credentials) -> Self {
        let fixed = match &cluster.endpoint {
            ClusterEndpoint::Const(fixed) => Some(ConstEndpoint::new(fixed, &cluster.trust, credentials)),
            ClusterEndpoint::ClusterProxy => None,
        };
        Self { r#type: cluster.endpoint.kind(), r#const: fixed }
    }
}

// === impl ConstEndpoint ===

impl ConstEndpoint {
    fn new(fixed: &Fixed, trust: &Trust, credentials: Credentials) -> Self {
        let ca_bundle = match trust {
            Trust::Bundle(pem) => Some(STANDARD.encode(pem)),
            Trust::SystemRoots | Trust::Insecure => None,
        };
        let proxy_url = fixed.proxy.as_ref().map(|proxy| proxy_url(proxy, credentials));
        Self { address: fixed.url.to_string(), ca_bundle, insecure: *trust == Trust::Insecure, proxy_url }
    }
}

fn proxy_url(proxy: &ProxyUrl, credentials: Credentials) -> String {
    match credentials {
        Credentials::Redacted => proxy.redacted(),
        Credentials::Exposed => proxy.exposed().expose_secret().to_owned(),
    }
}

// === impl CredentialField ===

impl<'a> CredentialField<'a> {
    fn new(credential: &'a Credential, credentials: Credentials) -> Self {
        let redacted = Self { r#type: credential.kind().as_str(), service_account_token: None, x509: None };
        match (credentials, credential) {
            (Credentials::Redacted, _) | (_, Credential::Exec(_)) => redacted,
            (Credentials::Exposed, Credential::Token(token)) => {
                Self { service_account_token: Some(token.expose_secret()), ..redacted }
            }
            (Credentials::Exposed, Credential::X509 { certificate, private_key }) => {
                let x509 = X509 {
                    certificate: STANDARD.encode(certificate),
                    private_key: STANDARD.encode(private_key.expose_secret()),
                };
                Self { x509: Some(x509), ..redacted }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::accept::Representation;
    use crate::samples::{certificate_cluster, proxied_cluster, token_cluster};
    use crate::served::{Form, ListMeta};
    use crate::table::IncludeObject;

    const PLAIN: Form = Form { representation: Representation::Json, include: IncludeObject::Metadata };

    fn text(json: &Bytes) -> String {
        String::from_utf8(json.to_vec()).expect("JSON is UTF-8")
    }

    fn object(spec: &ClusterSpec, credentials: Credentials) -> String {
        text(&PLAIN.object(&ClusterGateway::new(spec, Health::default(), credentials)))
    }

    fn list(specs: &[ClusterSpec], metadata: ListMeta<'_>) -> String {
        let new = |spec| ClusterGateway::new(spec, Health::default(), Credentials::Redacted);
        let objects: Vec<_> = specs.iter().map(new).collect();
        text(&PLAIN.list(&objects, metadata))
    }

    #[test]
    fn objects_show_no_credential() {
        let specs = [token_cluster("c1"), certificate_cluster("c2"), proxied_cluster("c3")];
        let all: Vec<_> = specs.iter().map(|spec| object(spec, Credentials::Redacted)).collect();
        insta::assert_snapshot!(all.concat());
        let items = list(&specs, ListMeta { resource_version: "42", ..ListMeta::default() });
        for json in all.iter().chain([&items]) {
            assert!(!json.contains("canary") && !json.contains(&STANDARD.encode("canary")[..6]));
        }
    }

    #[test]
    fn credentials_are_restored_on_request() {
        let specs = [token_cluster("c1"), certificate_cluster("c2"), proxied_cluster("c3")];
        insta::assert_snapshot!(specs.iter().map(|spec| object(spec, Credentials::Exposed)).collect::<String>());
    }

    #[test]
    fn list_items_are_never_null() {
        let specs = [token_cluster("c1"), certificate_cluster("c2")];
        let full = list(&specs, ListMeta { resource_version: "42", next: Some("t"), remaining_item_count: Some(3) });
        let empty = list(&[], ListMeta { resource_version: "7", ..ListMeta::default() });
        insta::assert_snapshot!([full, empty].concat());
    }

    #[test]
    fn what_is_left_of_an_object_has_the_types_fields() {
        let metadata = ObjectMeta { name: "c1", uid: "u", resource_version: "43", ..ObjectMeta::default() };
        insta::assert_snapshot!(text(&PLAIN.object(&ClusterGateway::remnant(metadata))));
    }
}
