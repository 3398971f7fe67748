//! A registered cluster, as read from `clustergateways`.

mod item;

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::health::Health;
use api::secret::{ENDPOINT_TYPE_CLUSTER_PROXY, ENDPOINT_TYPE_CONST};

pub use self::item::Item;

/// A cluster that the gateway can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    pub name: ClusterName,
    /// The labels that the gateway shows. It matches selectors with all labels of the cluster's
    /// Secret, shown or not.
    pub labels: BTreeMap<String, String>,
    /// Of its Secret; empty if the object does not have it.
    pub uid: String,
    /// `None` if the object does not have it.
    pub endpoint: Option<EndpointType>,
    /// The URL, if the member has a fixed one.
    pub address: Option<String>,
    /// Whether the certificate of a member with a fixed URL is not verified.
    pub insecure: bool,
    /// A [`api::secret::CredentialType`], as written; `None` if the object does not have it.
    pub credential: Option<String>,
    /// The health last reported; `None` if the object does not have it.
    pub health: Option<Health>,
}

/// How a member is reached: the label [`api::secret::ENDPOINT_TYPE_LABEL`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointType {
    /// At a fixed URL.
    Const,
    /// Through a tunnel that the member's agent opened.
    ClusterProxy,
    /// A type that this program does not know.
    Other(String),
}

// === impl EndpointType ===

impl EndpointType {
    /// As written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Const => ENDPOINT_TYPE_CONST,
            Self::ClusterProxy => ENDPOINT_TYPE_CLUSTER_PROXY,
            Self::Other(text) => text,
        }
    }

    /// Parses the type.
    pub fn of(text: String) -> Self {
        match &*text {
            ENDPOINT_TYPE_CONST => Self::Const,
            ENDPOINT_TYPE_CLUSTER_PROXY => Self::ClusterProxy,
            _ => Self::Other(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use api::cluster_gateway::{ClusterGateway, Credentials};
    use api::object::Served as _;
    use api::secret::{ClusterSecret, ClusterSpec, Credential, SecretRules, SecretView, Trust};
    use serde_json::{Value, json};

    use super::*;

    fn read(item: Value) -> Option<Cluster> {
        serde_json::from_value::<Item>(item).unwrap().cluster()
    }

    /// Reads an object that the gateway's own type wrote.
    #[test]
    fn a_cluster_is_read_as_the_gateway_writes_it() {
        let endpoint = api::secret::ClusterEndpoint::ClusterProxy;
        let secret = ClusterSecret::new(endpoint, Trust::SystemRoots, Credential::Token("t".to_owned().into()));
        let document = secret.document(None, "berlin").unwrap();
        let labels = serde_json::from_value(document["metadata"]["labels"].clone()).unwrap();
        let (annotations, data) = (BTreeMap::new(), BTreeMap::from([("token".to_owned(), b"t".to_vec())]));
        let view = SecretView {
            name: "berlin",
            uid: "u",
            resource_version: "1",
            creation_timestamp: None,
            labels: &labels,
            annotations: &annotations,
            data: &data,
        };
        let spec = ClusterSpec::from_secret(&view, SecretRules::default()).unwrap();
        let health = Health { healthy: true, healthy_reason: "seen".into() };
        let object = ClusterGateway::new(&spec, health.clone(), Credentials::Redacted);
        let mut item = serde_json::to_value(object.content()).unwrap();
        item["metadata"] = serde_json::to_value(object.metadata()).unwrap();
        let cluster = read(item).unwrap();
        assert_eq!((cluster.name.as_str(), cluster.health), ("berlin", Some(health)));
        assert_eq!((cluster.endpoint, cluster.address), (Some(EndpointType::ClusterProxy), None));
        assert_eq!((&*cluster.uid, cluster.credential.as_deref()), ("u", Some("ServiceAccountToken")));
    }

    #[test]
    fn what_an_object_does_not_say_is_not_guessed() {
        let bare = read(json!({"metadata": {"name": "c"}})).unwrap();
        assert_eq!((bare.endpoint, bare.health), (None, None));
        let newer = read(json!({"metadata": {"name": "c"}, "spec": {"access": {"endpoint": {"type": "Relay"}}}}));
        assert_eq!(newer.unwrap().endpoint, Some(EndpointType::Other("Relay".into())));
    }

    #[test]
    fn a_fixed_url_is_told() {
        let access = json!({"endpoint": {"type": "Const", "const": {"address": "https://10.0.0.7:6443"}}});
        let fixed = read(json!({"metadata": {"name": "c"}, "spec": {"access": access}})).unwrap();
        assert_eq!(fixed.address.as_deref(), Some("https://10.0.0.7:6443"));
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_no_cluster() {
        for name in ["", "a/b", "..", "a%2fb", "A"] {
            assert_eq!(read(json!({"metadata": {"name": name}})), None, "{name}");
        }
    }
}
