//! The content of a cluster Secret of Argo CD, and the marks of our Secrets.

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::route::Dialect;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use register::profile::GatewayAddress;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Value, json};

/// Label that makes a Secret one of Argo CD's clusters.
const ARGOCD_LABEL: (&str, &str) = ("argocd.argoproj.io/secret-type", "cluster");
/// Label and annotation that mark our Secrets and name the cluster. The watch selects the label;
/// the annotation remains if the label is removed.
pub const CLUSTER_KEY: &str = "cluster.core.oam.dev/argocd-cluster";
/// Prefix of the Secrets' names, before the cluster's name.
const PREFIX: &str = "cluster-gateway-";

/// Most writers that a message names.
const WRITERS: usize = 3;

/// Our fields. Fields that other writers add, such as `project` or `namespaces`, stay.
#[derive(Clone)]
pub struct Content {
    name: String,
    server: String,
    /// JSON that contains the token.
    config: SecretString,
}

/// One of our Secrets as it is on the hub.
pub struct HeldSecret {
    pub uid: String,
    pub version: String,
    /// Our label is missing, or names another cluster.
    pub is_stray: bool,
    is_marked: bool,
    content: Option<Content>,
}

// === impl Content ===

impl Content {
    pub fn new(cluster: &ClusterName, gateway: &GatewayAddress, token: &SecretString) -> Self {
        let path = Dialect::Native.path(cluster).unwrap_or_default();
        let mut tls = json!({"insecure": false});
        if let Some(ca) = &gateway.ca {
            tls["caData"] = STANDARD.encode(ca).into();
        }
        let config = json!({"bearerToken": token.expose_secret(), "tlsClientConfig": tls});
        let config = SecretString::from(config.to_string());
        Self { name: cluster.as_str().to_owned(), server: format!("{}{path}", gateway.url), config }
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

    /// The token in the configuration.
    pub fn token(&self) -> Option<SecretString> {
        let config: Value = serde_json::from_str(self.config.expose_secret()).ok()?;
        config["bearerToken"].as_str().map(SecretString::from)
    }

    /// A new Secret with this content.
    pub fn secret(&self, cluster: &ClusterName) -> Secret {
        let metadata = ObjectMeta {
            name: Some(secret_name(cluster.as_str())),
            labels: Some(labels(cluster.as_str()).map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            annotations: Some([(CLUSTER_KEY.to_owned(), cluster.as_str().to_owned())].into()),
            ..ObjectMeta::default()
        };
        let data = self.data().map(|(key, value)| (key.to_owned(), ByteString(value.as_bytes().to_vec())));
        Secret { metadata, data: Some(data.into()), type_: Some("Opaque".to_owned()), ..Secret::default() }
    }

    /// A merge patch that gives the Secret with this UID and version this content.
    pub fn patch(&self, cluster: &ClusterName, (uid, version): (&str, &str)) -> Value {
        let labels: BTreeMap<&str, &str> = labels(cluster.as_str()).into();
        let data: BTreeMap<&str, String> = self.data().map(|(key, value)| (key, STANDARD.encode(value))).into();
        let annotations = json!({CLUSTER_KEY: cluster.as_str()});
        let metadata = json!({"uid": uid, "resourceVersion": version, "labels": labels, "annotations": annotations});
        json!({"metadata": metadata, "data": data})
    }

    fn data(&self) -> [(&'static str, &str); 3] {
        [("name", &self.name), ("server", &self.server), ("config", self.config.expose_secret())]
    }
}

fn labels(cluster: &str) -> [(&'static str, &str); 2] {
    [ARGOCD_LABEL, (CLUSTER_KEY, cluster)]
}

pub fn secret_name(cluster: &str) -> String {
    format!("{PREFIX}{cluster}")
}

/// The cluster whose Secret has this name.
pub fn cluster_of(secret: &str) -> Option<&str> {
    secret.strip_prefix(PREFIX)
}

/// The managers of the fields of another program's Secret, three at most.
pub fn writers(metadata: &ObjectMeta) -> String {
    let entries = metadata.managed_fields.iter().flatten();
    let mut writers: Vec<&str> = entries.filter_map(|entry| entry.manager.as_deref()).collect();
    writers.sort_unstable();
    writers.dedup();
    writers.truncate(WRITERS);
    if writers.is_empty() { "an unknown manager".to_owned() } else { writers.join(", ") }
}

// === impl HeldSecret ===

impl HeldSecret {
    /// Reads a Secret and its cluster's name, if it is one of ours. A copy under another name
    /// belongs to a person.
    pub fn read(secret: &Secret) -> Option<(String, Self)> {
        Self::of(&secret.metadata, secret.data.as_ref().and_then(Content::read))
    }

    /// Like [`HeldSecret::read`], from metadata and from the content if it was read.
    pub fn of(metadata: &ObjectMeta, content: Option<Content>) -> Option<(String, Self)> {
        let cluster = cluster_of(metadata.name.as_deref()?)?;
        let says = |entries: Option<&BTreeMap<String, String>>, key: &str, value: &str| {
            entries.and_then(|entries| entries.get(key)).is_some_and(|known| known == value)
        };
        let labels = metadata.labels.as_ref();
        let is_labelled = says(labels, CLUSTER_KEY, cluster);
        let is_annotated = says(metadata.annotations.as_ref(), CLUSTER_KEY, cluster);
        if !is_labelled && !is_annotated {
            return None;
        }
        let held = Self {
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            is_stray: !is_labelled,
            is_marked: is_labelled && is_annotated && says(labels, ARGOCD_LABEL.0, ARGOCD_LABEL.1),
            content,
        };
        Some((cluster.to_owned(), held))
    }

    pub fn has(&self, content: &Content) -> bool {
        self.is_marked && self.content.as_ref().is_some_and(|held| held.says_as(content))
    }

    pub fn token(&self) -> Option<SecretString> {
        self.content.as_ref()?.token()
    }
}

#[cfg(test)]
mod tests {
    use kube::ResourceExt as _;

    use super::*;

    fn cluster() -> ClusterName {
        ClusterName::parse("berlin").unwrap()
    }

    fn content(token: &str) -> Content {
        let gateway = GatewayAddress { url: "https://gateway:9443".into(), ca: Some(b"pem".to_vec()) };
        Content::new(&cluster(), &gateway, &SecretString::from(token))
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
        let (of, held) = HeldSecret::read(&secret).unwrap();
        assert!(of == "berlin" && held.has(&content("t")) && !held.has(&content("u")));
        assert_eq!(held.token().unwrap().expose_secret(), "t");
    }

    #[test]
    fn only_what_bears_our_mark_and_name_is_ours() {
        let mut secret = content("t").secret(&cluster());
        secret.metadata.name = Some("copy".into());
        assert!(HeldSecret::read(&secret).is_none());
        let mut secret = content("t").secret(&cluster());
        secret.labels_mut().remove("argocd.argoproj.io/secret-type");
        assert!(!HeldSecret::read(&secret).unwrap().1.has(&content("t")), "it is put back");
        secret.annotations_mut().clear();
        assert!(HeldSecret::read(&secret).is_some(), "by its label");
        secret.labels_mut().clear();
        assert!(HeldSecret::read(&secret).is_none());
    }

    #[test]
    fn what_somebody_relabelled_is_ours_by_its_annotation_and_put_back() {
        for label in [None, Some("other")] {
            let mut secret = content("t").secret(&cluster());
            let labels = secret.labels_mut();
            labels.remove(CLUSTER_KEY);
            labels.extend(label.map(|label| (CLUSTER_KEY.to_owned(), label.to_owned())));
            let (of, held) = HeldSecret::read(&secret).unwrap();
            assert!(of == "berlin" && held.is_stray && !held.has(&content("t")), "{label:?}");
        }
        assert!(!HeldSecret::read(&content("t").secret(&cluster())).unwrap().1.is_stray);
        let patch = content("t").patch(&cluster(), ("u", "1"));
        for marks in ["labels", "annotations"] {
            assert_eq!(patch["metadata"][marks][CLUSTER_KEY], "berlin");
        }
    }

    #[test]
    fn who_wrote_a_secret_that_is_in_the_way_is_named() {
        let fields = ["kubectl", "kubectl", "argocd", "a", "b"].map(|manager| json!({"manager": manager}));
        let metadata: ObjectMeta = serde_json::from_value(json!({"managedFields": fields})).unwrap();
        assert_eq!(
            (writers(&metadata).as_str(), writers(&ObjectMeta::default()).as_str()),
            ("a, argocd, b", "an unknown manager")
        );
    }
}
