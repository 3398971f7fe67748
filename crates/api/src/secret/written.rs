//! Writes a cluster's Secret, as registration needs it: the reverse of reading one.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretSlice};
use serde_json::{Value, json};

use super::{
    AGENT_ACCOUNT_ANNOTATION, ALIAS_ANNOTATION, CA_KEY, CREDENTIAL_TYPE_LABEL, ClusterEndpoint, ClusterSpec,
    Credential, ENDPOINT_KEY, ENDPOINT_TYPE_LABEL, EXEC_KEY, FALLBACKS_KEY, IDENTITY_RULES_ANNOTATION, INSECURE_KEY,
    MEMBER_ACCOUNT_ANNOTATION, MEMBER_UID_ANNOTATION, MissingCa, PROXY_URL_KEY, SecretError, SecretRules, SecretView,
    TLS_CERT_KEY, TLS_PRIVATE_KEY_KEY, TLS_SERVER_NAME_KEY, TOKEN_KEY, Trust, fallbacks,
};

/// A member cluster to write as a Secret: the only writer of what [`ClusterSpec::from_secret`]
/// reads.
#[derive(Debug, Clone)]
pub struct ClusterSecret {
    pub endpoint: ClusterEndpoint,
    pub trust: Trust,
    /// A DNS name or an IP address.
    pub tls_server_name: Option<String>,
    pub credential: Credential,
    /// Labels besides those of the contract, which these cannot replace.
    pub labels: BTreeMap<String, String>,
    /// Annotation [`ALIAS_ANNOTATION`].
    pub alias: Option<String>,
    /// Annotation [`IDENTITY_RULES_ANNOTATION`]: text of a `ClusterGatewayProxyConfiguration`.
    pub identity_rules: Option<String>,
    /// Annotation [`MEMBER_UID_ANNOTATION`].
    pub member_uid: Option<String>,
    /// Annotation [`MEMBER_ACCOUNT_ANNOTATION`].
    pub member_account: Option<String>,
    /// Annotation [`AGENT_ACCOUNT_ANNOTATION`].
    pub agent_account: Option<String>,
}

/// The rules of the most lenient gateway: each gateway itself decides about `http://`.
const MOST_LENIENT: SecretRules = SecretRules { allow_http: true, missing_ca: MissingCa::SystemRoots };

// === impl ClusterSecret ===

impl ClusterSecret {
    /// A cluster with only the parts needed to reach it.
    pub fn new(endpoint: ClusterEndpoint, trust: Trust, credential: Credential) -> Self {
        Self {
            endpoint,
            trust,
            tls_server_name: None,
            credential,
            labels: BTreeMap::new(),
            alias: None,
            identity_rules: None,
            member_uid: None,
            member_account: None,
            agent_account: None,
        }
    }

    /// The `v1 Secret` that makes this the cluster `name`. Without `namespace` for directories of
    /// manifests. It contains the credential in base64: do not log it. Fails like the reader does
    /// for a Secret that no gateway could use, so that such a Secret is never written.
    pub fn document(&self, namespace: Option<&str>, name: &str) -> Result<Value, SecretError> {
        let (labels, annotations, data) = (self.all_labels(), self.annotations(), self.data());
        let view = SecretView {
            name,
            uid: "",
            resource_version: "",
            creation_timestamp: None,
            labels: &labels,
            annotations: &annotations,
            data: &data,
        };
        ClusterSpec::from_secret(&view, MOST_LENIENT)?;
        let data: BTreeMap<&String, String> = data.iter().map(|(key, value)| (key, STANDARD.encode(value))).collect();
        let mut metadata = json!({"name": name, "labels": labels});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        Ok(json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": data}))
    }

    /// All entries of the Secret in a stable order: the map (`labels`, `annotations`, `data`), the
    /// key and the value. For comparing two Secrets without keeping either, because a Secret
    /// contains the credential.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, String, SecretSlice<u8>)> {
        let texts = |map: &'static str, texts: BTreeMap<String, String>| {
            texts.into_iter().map(move |(key, text)| (map, key, SecretSlice::from(text.into_bytes())))
        };
        let data = self.data().into_iter().map(|(key, value)| ("data", key, SecretSlice::from(value)));
        texts("labels", self.all_labels()).chain(texts("annotations", self.annotations())).chain(data)
    }

    fn all_labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.insert(CREDENTIAL_TYPE_LABEL.to_owned(), self.credential.kind().as_str().to_owned());
        labels.insert(ENDPOINT_TYPE_LABEL.to_owned(), self.endpoint.kind().to_owned());
        labels
    }

    fn annotations(&self) -> BTreeMap<String, String> {
        let given = [
            (ALIAS_ANNOTATION, &self.alias),
            (IDENTITY_RULES_ANNOTATION, &self.identity_rules),
            (MEMBER_UID_ANNOTATION, &self.member_uid),
            (MEMBER_ACCOUNT_ANNOTATION, &self.member_account),
            (AGENT_ACCOUNT_ANNOTATION, &self.agent_account),
        ];
        given.into_iter().filter_map(|(key, text)| Some((key.to_owned(), text.clone()?))).collect()
    }

    fn data(&self) -> BTreeMap<String, Vec<u8>> {
        let mut data = BTreeMap::new();
        let mut put = |key: &str, value: &[u8]| data.insert(key.to_owned(), value.to_vec());
        if let ClusterEndpoint::Const(fixed) = &self.endpoint {
            put(ENDPOINT_KEY, fixed.url.to_string().as_bytes());
            if let Some(text) = fallbacks::written(&fixed.fallbacks) {
                put(FALLBACKS_KEY, text.as_bytes());
            }
            if let Some(proxy) = &fixed.proxy {
                put(PROXY_URL_KEY, proxy.exposed().expose_secret().as_bytes());
            }
        }
        match &self.trust {
            Trust::Bundle(bundle) => put(CA_KEY, bundle),
            // Written explicitly: to some gateways, a Secret without a CA is an insecure one
            // (`MissingCa`).
            Trust::SystemRoots => put(INSECURE_KEY, b"false"),
            Trust::Insecure => put(INSECURE_KEY, b"true"),
        };
        if let Some(name) = &self.tls_server_name {
            put(TLS_SERVER_NAME_KEY, name.as_bytes());
        }
        match &self.credential {
            Credential::Token(token) => put(TOKEN_KEY, token.expose_secret().as_bytes()),
            Credential::X509 { certificate, private_key } => {
                put(TLS_CERT_KEY, certificate);
                put(TLS_PRIVATE_KEY_KEY, private_key.expose_secret())
            }
            Credential::Exec(exec) => put(EXEC_KEY, exec.written().to_string().as_bytes()),
        };
        data
    }
}

#[cfg(test)]
mod tests;
