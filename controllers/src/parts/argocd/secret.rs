//! What stands in a cluster Secret of Argo CD, and whether a Secret is one of ours.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::route::Dialect;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;
use register::profile::Way;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// Label: a Secret is one of Argo CD's, and what of.
const ARGOCD_LABEL: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");
/// Label: the Secret is ours, and of which cluster.
pub const CLUSTER_LABEL: &str = "cluster.core.oam.dev/argocd-cluster";
/// Before a cluster's name in that of its Secret.
const PREFIX: &str = "cluster-gateway-";

/// The fields that are ours. What others add, such as `project` or `namespaces`, stays.
#[derive(Clone)]
pub struct Content {
    name: String,
    server: String,
    /// JSON, with the token in it.
    config: SecretString,
}

/// A Secret of ours as it is on the hub.
pub struct Held {
    pub uid: String,
    pub version: String,
    is_labelled: bool,
    content: Option<Content>,
}

// === impl Content ===

impl Content {
    pub fn new(cluster: &ClusterName, way: &Way, token: &SecretString) -> Self {
        let path = Dialect::Native.path(cluster).unwrap_or_default();
        let mut tls = json!({"insecure": false});
        if let Some(ca) = &way.ca {
            tls["caData"] = STANDARD.encode(ca).into();
        }
        let config = json!({"bearerToken": token.expose_secret(), "tlsClientConfig": tls});
        let config = SecretString::from(config.to_string());
        Self { name: cluster.as_str().to_owned(), server: format!("{}{path}", way.url), config }
    }

    fn read(data: &BTreeMap<String, ByteString>) -> Option<Self> {
        let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
        Some(Self { name: text("name")?, server: text("server")?, config: SecretString::from(text("config")?) })
    }

    fn says_as(&self, other: &Self) -> bool {
        self.name == other.name
            && self.server == other.server
            && self.config.expose_secret() == other.config.expose_secret()
    }

    /// The token in it.
    pub fn token(&self) -> Option<SecretString> {
        let config: Value = serde_json::from_str(self.config.expose_secret()).ok()?;
        config["bearerToken"].as_str().map(SecretString::from)
    }

    /// A Secret with it.
    pub fn secret(&self, cluster: &ClusterName) -> Secret {
        let metadata = ObjectMeta {
            name: Some(secret_name(cluster.as_str())),
            labels: Some(labels(cluster.as_str()).map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            ..ObjectMeta::default()
        };
        let data = self.data().map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret { metadata, data: Some(data.into()), type_: Some("Opaque".to_owned()), ..Secret::default() }
    }

    /// A merge patch that makes it of the Secret with this UID and version.
    pub fn patch(&self, cluster: &ClusterName, (uid, version): (&str, &str)) -> Value {
        let labels: BTreeMap<&str, &str> = labels(cluster.as_str()).into();
        let data: BTreeMap<&str, String> = self.data().map(|(key, value)| (key, STANDARD.encode(value))).into();
        json!({"metadata": {"uid": uid, "resourceVersion": version, "labels": labels}, "data": data})
    }

    fn data(&self) -> [(&'static str, &str); 3] {
        [("name", &self.name), ("server", &self.server), ("config", self.config.expose_secret())]
    }
}

fn labels(cluster: &str) -> [(&'static str, &str); 2] {
    [ARGOCD_LABEL, (CLUSTER_LABEL, cluster)]
}

pub fn secret_name(cluster: &str) -> String {
    format!("{PREFIX}{cluster}")
}

// === impl Held ===

impl Held {
    /// The cluster of a Secret, and the Secret, if it is one of ours: a copy under another name is
    /// a person's.
    pub fn read(secret: &Secret) -> Option<(String, Self)> {
        let cluster = secret.labels().get(CLUSTER_LABEL)?.clone();
        if secret.name_any() != secret_name(&cluster) {
            return None;
        }
        let held = Self {
            uid: secret.uid().unwrap_or_default(),
            version: secret.resource_version().unwrap_or_default(),
            is_labelled: secret.labels().get(ARGOCD_LABEL.0).is_some_and(|value| value == ARGOCD_LABEL.1),
            content: secret.data.as_ref().and_then(Content::read),
        };
        Some((cluster, held))
    }

    pub fn has(&self, content: &Content) -> bool {
        self.is_labelled && self.content.as_ref().is_some_and(|held| held.says_as(content))
    }

    pub fn token(&self) -> Option<SecretString> {
        self.content.as_ref()?.token()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster() -> ClusterName {
        ClusterName::parse("berlin").unwrap()
    }

    fn content(token: &str) -> Content {
        let way = Way { url: "https://gateway:9443".into(), ca: Some(b"pem".to_vec()) };
        Content::new(&cluster(), &way, &SecretString::from(token))
    }

    #[test]
    fn a_secret_is_as_argo_cd_reads_it() {
        let secret = content("t").secret(&cluster());
        assert_eq!(secret.name_any(), "cluster-gateway-berlin");
        assert_eq!(secret.labels()["argocd.argoproj.io/secret-type"], "cluster");
        let data = secret.data.clone().unwrap();
        let text = |key: &str| String::from_utf8(data[key].0.clone()).unwrap();
        assert_eq!(text("name"), "berlin");
        let path = "/apis/cluster.core.oam.dev/v1alpha1/clustergateways/berlin/proxy";
        assert_eq!(text("server"), format!("https://gateway:9443{path}"));
        let config: Value = serde_json::from_str(&text("config")).unwrap();
        let tls = json!({"insecure": false, "caData": "cGVt"});
        assert_eq!(config, json!({"bearerToken": "t", "tlsClientConfig": tls}));
        let (of, held) = Held::read(&secret).unwrap();
        assert!(of == "berlin" && held.has(&content("t")) && !held.has(&content("u")));
        assert_eq!(held.token().unwrap().expose_secret(), "t");
    }

    #[test]
    fn only_what_bears_our_label_and_name_is_ours() {
        let mut secret = content("t").secret(&cluster());
        secret.metadata.name = Some("copy".into());
        assert!(Held::read(&secret).is_none());
        let mut secret = content("t").secret(&cluster());
        secret.labels_mut().remove("argocd.argoproj.io/secret-type");
        assert!(!Held::read(&secret).unwrap().1.has(&content("t")), "it is put back");
        secret.labels_mut().remove(CLUSTER_LABEL);
        assert!(Held::read(&secret).is_none());
    }
}
