//! Why a Secret is not a usable cluster. Every text names the wrong key and the fix, and never
//! repeats the key's value.

use super::{
    CA_KEY, CREDENTIAL_TYPE_LABEL, ENDPOINT_KEY, ENDPOINT_TYPE_LABEL, EXEC_KEY, FALLBACKS_KEY, INSECURE_KEY,
    InvalidEndpoint, InvalidProxyUrl, LEGACY_CA_KEY, PROXY_URL_KEY, TLS_CERT_KEY, TLS_PRIVATE_KEY_KEY,
    TLS_SERVER_NAME_KEY, TOKEN_KEY,
};

/// Why a Secret is not a usable cluster.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    #[error("the Secret's name is not a cluster name: rename it to a lower-case DNS-1123 subdomain")]
    Name,
    /// The Secret was not meant as a cluster.
    #[error(
        "the Secret has no label {CREDENTIAL_TYPE_LABEL}: set it to ServiceAccountToken, X509Certificate or Dynamic"
    )]
    NoCredentialType,
    /// Starts with the Go cluster-gateway's text.
    #[error(
        "unrecognized secret credential type {0}: set the label {CREDENTIAL_TYPE_LABEL} to ServiceAccountToken, \
         X509Certificate or Dynamic"
    )]
    UnknownCredentialType(String),
    #[error(
        "unsupported cluster gateway endpoint type {0}: remove the label {ENDPOINT_TYPE_LABEL} or set it to Const or ClusterProxy"
    )]
    UnknownEndpointType(String),
    #[error("key {PROXY_URL_KEY:?}: {0}")]
    ProxyUrl(#[from] InvalidProxyUrl),
    #[error("key {EXEC_KEY:?} is not the JSON of an ExecConfig: correct it")]
    ExecNotJson,
    #[error(
        "key {EXEC_KEY:?}: apiVersion must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1"
    )]
    ExecApiVersion,
    #[error("key {EXEC_KEY:?}: missing \"command\" property on exec config object")]
    ExecNoCommand,
    #[error("key {EXEC_KEY:?}: {0}")]
    Exec(&'static str),
    #[error("key {0:?} is not UTF-8 text: store text in it")]
    NotText(&'static str),
    /// Starts with the Go cluster-gateway's text.
    #[error("missing label key: api-endpoint: set key {ENDPOINT_KEY:?} to the API server's URL, https://HOST:PORT")]
    NoEndpoint,
    #[error("key {ENDPOINT_KEY:?}: {0}")]
    Endpoint(#[from] InvalidEndpoint),
    #[error("key {FALLBACKS_KEY:?}: {0}")]
    Fallback(InvalidEndpoint),
    #[error("key {FALLBACKS_KEY:?}: {0}")]
    Fallbacks(&'static str),
    #[error(
        "key {0:?} holds no PEM certificate: store the CA bundle in PEM form, or leave the key empty to trust the \
         system's roots"
    )]
    CaNotPem(&'static str),
    #[error("key {INSECURE_KEY:?} must be \"true\" or \"false\"")]
    InsecureNotBoolean,
    #[error(
        "key {INSECURE_KEY:?} contradicts the CA bundle: remove {INSECURE_KEY:?}, or both {CA_KEY:?} and {LEGACY_CA_KEY:?}"
    )]
    InsecureWithCa,
    #[error("key {TLS_SERVER_NAME_KEY:?} must be a DNS name or an IP address, without scheme and port")]
    ServerName,
    /// Starts like [`SecretError::NoEndpoint`], the error without a `ManagedCluster`.
    #[error(
        "missing label key: api-endpoint: the ManagedCluster of this name is not accepted, so its addresses are not used: \
         if it is the right one, accept it (spec.hubAcceptsClient: true), or set key {ENDPOINT_KEY:?} to the API server's \
         URL, https://HOST:PORT"
    )]
    NotAccepted,
    /// The address in the `ManagedCluster`, which replaces the Secret's.
    #[error("the ManagedCluster's spec.managedClusterClientConfigs: {0}")]
    ManagedEndpoint(InvalidEndpoint),
    #[error("the ManagedCluster's spec.managedClusterClientConfigs: a caBundle holds no PEM certificate in base64")]
    ManagedCa,
    #[error("key {0:?} is missing or empty: the credential type needs it")]
    NoCredential(&'static str),
    #[error(
        "key {TOKEN_KEY:?} holds characters that are invalid in a bearer token (white space, control or non-ASCII \
         characters): store the decoded token alone, on one line"
    )]
    TokenNotVisible,
    #[error("key {TLS_CERT_KEY:?} holds no PEM certificate: store the client certificate in PEM form")]
    CertificateNotPem,
    #[error("key {TLS_PRIVATE_KEY_KEY:?} holds no PEM private key: store the unencrypted key in PEM form")]
    PrivateKeyNotPem,
}
