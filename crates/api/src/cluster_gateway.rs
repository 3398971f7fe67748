//! `ClusterGateway` as clients read it: a cluster's Secret without its secrets.
//!
//! Field names and their order are the incumbent's (its `clustergateway_types.go`); `metadata` has a real uid and
//! resourceVersion, which it lacks and without which no informer works. Credentials are left out unless the operator asked for
//! them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use crate::go_text;
use crate::secret::{ClusterEndpoint, ClusterSpec, ConstEndpoint as Fixed, Credential, Trust};

/// `apiVersion` of everything in our group.
pub const API_VERSION: &str = "cluster.core.oam.dev/v1alpha1";
/// Kind of a single object.
pub const KIND: &str = "ClusterGateway";

/// Whether a served object shows the cluster's credential.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Credentials {
    /// Only its type.
    #[default]
    Redacted,
    /// As the incumbent: whoever may read the object may use the credential.
    Exposed,
}

/// The JSON of one object.
pub fn object(cluster: &ClusterSpec, credentials: Credentials) -> Bytes {
    go_text::json(&ClusterGateway::new(cluster, credentials).with_type())
}

/// The JSON of a `ClusterGatewayList`. `resource_version` is that of the Secret list the clusters came from, and must not be
/// empty.
pub fn list<'a>(
    clusters: impl IntoIterator<Item = &'a ClusterSpec>,
    resource_version: &str,
    credentials: Credentials,
) -> Bytes {
    go_text::json(&List {
        kind: "ClusterGatewayList",
        api_version: API_VERSION,
        metadata: ListMeta { resource_version },
        items: clusters.into_iter().map(|cluster| ClusterGateway::new(cluster, credentials)).collect(),
    })
}

/// Exists only while it is serialised; not `Debug`, since it may hold an exposed credential.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterGateway<'a> {
    /// Absent in list items, as everywhere in Kubernetes.
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api_version: Option<&'static str>,
    metadata: ObjectMeta<'a>,
    spec: Spec<'a>,
    status: Status,
}

/// `metav1.ObjectMeta`, as far as we have it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ObjectMeta<'a> {
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    /// Null when unknown, as Go writes the zero time.
    creation_timestamp: Option<&'a str>,
}

/// `metav1.ListMeta`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta<'a> {
    pub(crate) resource_version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: ListMeta<'a>,
    items: Vec<ClusterGateway<'a>>,
}

#[derive(Serialize)]
struct Spec<'a> {
    /// Always present and always empty, as the incumbent reads it.
    provider: &'static str,
    access: Access<'a>,
}

#[derive(Serialize)]
struct Access<'a> {
    endpoint: EndpointField,
    credential: CredentialField<'a>,
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

#[derive(Serialize)]
struct Status {
    healthy: bool,
}

// === impl ClusterGateway ===

impl<'a> ClusterGateway<'a> {
    pub(crate) fn new(cluster: &'a ClusterSpec, credentials: Credentials) -> Self {
        let fixed = match &cluster.endpoint {
            ClusterEndpoint::Const(fixed) => Some(ConstEndpoint::new(fixed, &cluster.trust)),
            ClusterEndpoint::ClusterProxy => None,
        };
        let endpoint = EndpointField { r#type: cluster.endpoint.kind(), r#const: fixed };
        let credential = CredentialField::new(&cluster.credential, credentials);
        Self {
            kind: None,
            api_version: None,
            metadata: ObjectMeta::new(cluster),
            spec: Spec { provider: "", access: Access { endpoint, credential } },
            status: Status { healthy: false },
        }
    }

    pub(crate) fn with_type(self) -> Self {
        Self { kind: Some(KIND), api_version: Some(API_VERSION), ..self }
    }
}

// === impl ObjectMeta ===

impl<'a> ObjectMeta<'a> {
    pub(crate) fn new(cluster: &'a ClusterSpec) -> Self {
        Self {
            name: cluster.name.as_str(),
            uid: &cluster.uid,
            resource_version: &cluster.resource_version,
            creation_timestamp: cluster.creation_timestamp.as_deref(),
        }
    }
}

// === impl ConstEndpoint ===

impl ConstEndpoint {
    fn new(fixed: &Fixed, trust: &Trust) -> Self {
        let ca_bundle = match trust {
            Trust::Bundle(pem) => Some(STANDARD.encode(pem)),
            Trust::SystemRoots | Trust::Insecure => None,
        };
        Self { address: fixed.url.to_string(), ca_bundle, insecure: *trust == Trust::Insecure }
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
    use super::*;
    use crate::samples::{certificate_cluster, token_cluster};

    fn text(json: &Bytes) -> &str {
        std::str::from_utf8(json).expect("JSON is UTF-8")
    }

    #[test]
    fn objects_show_no_credential() {
        let (token, x509) = (token_cluster("c1"), certificate_cluster("c2"));
        let both = [object(&token, Credentials::Redacted), object(&x509, Credentials::Redacted)];
        insta::assert_snapshot!(both.iter().map(text).collect::<String>());
        let items = list([&token, &x509], "42", Credentials::Redacted);
        for json in both.iter().chain([&items]) {
            assert!(!text(json).contains("canary") && !text(json).contains(&STANDARD.encode("canary")[..6]));
        }
    }

    #[test]
    fn credentials_are_restored_on_request() {
        let both = [
            object(&token_cluster("c1"), Credentials::Exposed),
            object(&certificate_cluster("c2"), Credentials::Exposed),
        ];
        insta::assert_snapshot!(both.iter().map(text).collect::<String>());
    }

    #[test]
    fn list_items_are_never_null() {
        let (token, x509) = (token_cluster("c1"), certificate_cluster("c2"));
        let full = list([&token, &x509], "42", Credentials::Redacted);
        let empty = list([], "7", Credentials::Redacted);
        insta::assert_snapshot!([text(&full), text(&empty)].concat());
    }
}
