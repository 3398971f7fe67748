//! The Secret contract: one Secret describes one member cluster.
//!
//! Labels and data keys are those of the Go cluster-gateway, plus `tls-server-name`,
//! `insecure-skip-tls-verify` and `fallback-endpoints`. A Secret becomes either a complete
//! [`ClusterSpec`] or a [`SecretError`]. The error names the wrong key and the fix, and never
//! repeats the key's value, because these errors reach clients and logs.

mod credential;
mod endpoint;
mod error;
mod exec;
mod fallbacks;
mod proxy_url;
mod trust;
mod written;

use std::collections::BTreeMap;

pub use credential::{Credential, CredentialType};
pub use endpoint::{Endpoint, InvalidEndpoint, Scheme};
pub use error::SecretError;
pub use exec::{ExecApiVersion, ExecConfig, HARMLESS_VARIABLES};
pub use fallbacks::MOST_FALLBACKS;
pub use proxy_url::{InvalidProxyUrl, ProxyCredentials, ProxyScheme, ProxyUrl};
pub use trust::Trust;
pub use written::ClusterSecret;

use crate::cluster_name::ClusterName;

/// Label that makes a Secret a cluster. Watches select by it. Its value is a [`CredentialType`].
pub const CREDENTIAL_TYPE_LABEL: &str = "cluster.core.oam.dev/cluster-credential-type";
/// Label for the way to the member: `Const` (the default) or `ClusterProxy`.
pub const ENDPOINT_TYPE_LABEL: &str = "cluster.core.oam.dev/cluster-endpoint-type";

/// Data key: URL of the member's API server.
pub const ENDPOINT_KEY: &str = "endpoint";
/// Data key: further URLs of the same API server, each with its CA, for when the first cannot be
/// dialled.
pub const FALLBACKS_KEY: &str = "fallback-endpoints";
/// Data key: PEM bundle that the member's certificate must chain to.
pub const CA_KEY: &str = "ca.crt";
/// Data key: used if [`CA_KEY`] is absent.
pub const LEGACY_CA_KEY: &str = "ca";
/// Data key: `true` turns off verification of the member's certificate.
pub const INSECURE_KEY: &str = "insecure-skip-tls-verify";
/// Data key: the name to verify the member's certificate against, and the SNI. The default is the
/// endpoint's host.
pub const TLS_SERVER_NAME_KEY: &str = "tls-server-name";
/// Data key: PEM client certificate.
pub const TLS_CERT_KEY: &str = "tls.crt";
/// Data key: PEM private key of [`TLS_CERT_KEY`].
pub const TLS_PRIVATE_KEY_KEY: &str = "tls.key";
/// Data key: bearer token.
pub const TOKEN_KEY: &str = "token";
/// Data key: JSON of client-go's `ExecConfig`, for dynamic credentials.
pub const EXEC_KEY: &str = "exec";
/// Data key: forward proxy on the way to the member.
pub const PROXY_URL_KEY: &str = "proxy-url";
/// All keys that define how a member is reached: a write of some replaces all, or a
/// credential would be sent to an old address.
pub const DATA_KEYS: [&str; 11] = [
    ENDPOINT_KEY,
    TOKEN_KEY,
    CA_KEY,
    LEGACY_CA_KEY,
    INSECURE_KEY,
    TLS_SERVER_NAME_KEY,
    TLS_CERT_KEY,
    TLS_PRIVATE_KEY_KEY,
    PROXY_URL_KEY,
    EXEC_KEY,
    FALLBACKS_KEY,
];

/// Annotation: `true` or `false`, the last reported health of the member.
pub const HEALTHY_ANNOTATION: &str = "status.cluster.core.oam.dev/healthy";
/// Annotation: the reason, in a word or a sentence.
pub const HEALTHY_REASON_ANNOTATION: &str = "status.cluster.core.oam.dev/healthy-reason";
/// Annotation: the cluster's name for users.
pub const ALIAS_ANNOTATION: &str = "cluster.core.oam.dev/cluster-alias";
/// Annotation: uid of the member's Namespace `kube-system`, which identifies two registrations of
/// the same member.
pub const MEMBER_UID_ANNOTATION: &str = "cluster.core.oam.dev/member-uid";
/// Annotation: `<namespace>/<name>` of the ServiceAccount on the member that the token belongs to.
pub const MEMBER_ACCOUNT_ANNOTATION: &str = "cluster.core.oam.dev/member-account";
/// Annotation: `<namespace>/<name>` of the ServiceAccount on the hub that the cluster's agent uses.
pub const AGENT_ACCOUNT_ANNOTATION: &str = "cluster.core.oam.dev/agent-account";
/// Annotation: this cluster's identity rules, a `ClusterGatewayProxyConfiguration`.
pub const IDENTITY_RULES_ANNOTATION: &str = "cluster.core.oam.dev/cluster-gateway-proxy-configuration";

/// Value of [`ENDPOINT_TYPE_LABEL`] for a fixed URL.
pub const ENDPOINT_TYPE_CONST: &str = "Const";
/// Value of [`ENDPOINT_TYPE_LABEL`] for members behind a tunnel.
pub const ENDPOINT_TYPE_CLUSTER_PROXY: &str = "ClusterProxy";

/// The parts of a Secret that the conversion needs, independent of the library that read it.
#[derive(Clone, Copy)]
pub struct SecretView<'a> {
    pub name: &'a str,
    pub uid: &'a str,
    pub resource_version: &'a str,
    /// RFC 3339. Any other text counts as absent.
    pub creation_timestamp: Option<&'a str>,
    pub labels: &'a BTreeMap<String, String>,
    pub annotations: &'a BTreeMap<String, String>,
    /// Decoded values (no base64).
    pub data: &'a BTreeMap<String, Vec<u8>>,
}

/// The operator's rules about the content of Secrets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SecretRules {
    /// Accept `http://` endpoints. The credential then crosses the network unencrypted.
    pub allow_http: bool,
    pub missing_ca: MissingCa,
}

/// The meaning of a Secret without `ca.crt` and `ca`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MissingCa {
    /// Verify against the system's roots.
    #[default]
    SystemRoots,
    /// Do not verify, like the Go cluster-gateway.
    Insecure,
}

/// A member cluster as its Secret describes it.
#[derive(Debug, Clone)]
pub struct ClusterSpec {
    pub name: ClusterName,
    pub uid: String,
    pub resource_version: String,
    /// RFC 3339 with seconds.
    pub creation_timestamp: Option<String>,
    /// The Secret's labels, for selectors.
    pub labels: BTreeMap<String, String>,
    pub endpoint: ClusterEndpoint,
    pub trust: Trust,
    /// The name to verify and to send as SNI instead of the endpoint's host: a DNS name or an IP
    /// address.
    pub tls_server_name: Option<String>,
    pub credential: Credential,
    /// Annotation [`ALIAS_ANNOTATION`].
    pub alias: Option<String>,
    /// Text of the annotation [`IDENTITY_RULES_ANNOTATION`].
    pub identity_rules: Option<String>,
    /// Text of the annotation [`crate::karmada::ANNOTATION`].
    pub karmada: Option<String>,
    /// Annotations [`HEALTHY_ANNOTATION`] and [`HEALTHY_REASON_ANNOTATION`], as written.
    pub healthy: Option<String>,
    pub healthy_reason: Option<String>,
}

/// The way to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterEndpoint {
    Const(ConstEndpoint),
    /// Through a tunnel that the member's agent opened.
    ClusterProxy,
}

/// A fixed URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConstEndpoint {
    pub url: Endpoint,
    /// The forward proxy on the way to the member.
    pub proxy: Option<ProxyUrl>,
    /// Further URLs of the same API server, each with its own trust, for when the first cannot be
    /// dialled. Their base paths equal that of `url`.
    pub fallbacks: Vec<(Endpoint, Trust)>,
}

// === impl ClusterSpec ===

impl ClusterSpec {
    pub fn from_secret(secret: &SecretView<'_>, rules: SecretRules) -> Result<Self, SecretError> {
        let name = ClusterName::parse(secret.name).map_err(|_| SecretError::Name)?;
        let label = secret.labels.get(CREDENTIAL_TYPE_LABEL).ok_or(SecretError::NoCredentialType)?;
        let credential_type = CredentialType::parse(label)?;
        let data = Data(secret.data);
        let annotation = |key: &str| secret.annotations.get(key).filter(|text| !text.is_empty()).cloned();
        Ok(Self {
            name,
            uid: secret.uid.to_owned(),
            resource_version: secret.resource_version.to_owned(),
            creation_timestamp: secret.creation_timestamp.filter(|text| is_rfc3339(text)).map(str::to_owned),
            labels: secret.labels.clone(),
            endpoint: ClusterEndpoint::read(secret.labels, data, rules)?,
            trust: Trust::read(data, rules.missing_ca)?,
            tls_server_name: trust::server_name(data)?,
            credential: Credential::read(credential_type, data)?,
            alias: annotation(ALIAS_ANNOTATION),
            identity_rules: annotation(IDENTITY_RULES_ANNOTATION),
            karmada: annotation(crate::karmada::ANNOTATION),
            healthy: annotation(HEALTHY_ANNOTATION),
            healthy_reason: annotation(HEALTHY_REASON_ANNOTATION),
        })
    }
}

/// Whether a text looks like a PEM bundle of CA certificates.
pub(crate) fn is_certificate_bundle(text: &[u8]) -> bool {
    trust::has_pem(text, b"CERTIFICATE-----")
}

fn is_rfc3339(text: &str) -> bool {
    time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339).is_ok()
}

// === impl ClusterEndpoint ===

impl ClusterEndpoint {
    /// A fixed URL without a proxy.
    pub fn at(url: Endpoint) -> Self {
        Self::Const(ConstEndpoint { url, proxy: None, fallbacks: Vec::new() })
    }

    fn read(labels: &BTreeMap<String, String>, data: Data<'_>, rules: SecretRules) -> Result<Self, SecretError> {
        match labels.get(ENDPOINT_TYPE_LABEL).map(String::as_str) {
            None | Some(ENDPOINT_TYPE_CONST) => {}
            Some(ENDPOINT_TYPE_CLUSTER_PROXY) => return Ok(Self::ClusterProxy),
            // Safe to repeat: a label is not secret, and Kubernetes limits it to 63 harmless
            // characters.
            Some(other) => return Err(SecretError::UnknownEndpointType(other.to_owned())),
        }
        let url = data.text(ENDPOINT_KEY)?.filter(|url| !url.is_empty()).ok_or(SecretError::NoEndpoint)?;
        let url = Endpoint::parse(url, rules.allow_http)?;
        let proxy = data.text(PROXY_URL_KEY)?.filter(|url| !url.is_empty()).map(ProxyUrl::parse).transpose()?;
        let fallbacks = fallbacks::read(data, &url, rules)?;
        Ok(Self::Const(ConstEndpoint { url, proxy, fallbacks }))
    }

    /// The value of [`ENDPOINT_TYPE_LABEL`] for this endpoint.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Const(_) => ENDPOINT_TYPE_CONST,
            Self::ClusterProxy => ENDPOINT_TYPE_CLUSTER_PROXY,
        }
    }
}

// === impl Data ===

/// The Secret's data, read by key.
#[derive(Clone, Copy)]
struct Data<'a>(&'a BTreeMap<String, Vec<u8>>);

impl<'a> Data<'a> {
    fn bytes(self, key: &str) -> Option<&'a [u8]> {
        self.0.get(key).map(Vec::as_slice)
    }

    /// A one-line text, without the final newline that files and `echo` leave.
    fn text(self, key: &'static str) -> Result<Option<&'a str>, SecretError> {
        let Some(bytes) = self.bytes(key) else { return Ok(None) };
        let text = std::str::from_utf8(bytes).map_err(|_| SecretError::NotText(key))?;
        let line = text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests;
