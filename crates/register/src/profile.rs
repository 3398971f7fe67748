//! The `ClusterProfile` that this program publishes for a registered cluster, so that every client
//! of the SIG's library reaches it through the gateway.
//!
//! A profile is built from the non-credential parts of the cluster's Secret, and from what was last
//! seen of the member. This module also decides whether an existing profile already says the same:
//! then it is not rewritten.
//! <https://github.com/kubernetes-sigs/cluster-inventory-api/tree/main/apis/v1alpha1>

mod health;
mod properties;
mod said;

use std::collections::BTreeMap;

use api::cluster_name::ClusterName;
use api::conditions;
use api::secret::{ALIAS_ANNOTATION, CREDENTIAL_TYPE_LABEL};
use api::virtual_cluster::LOCAL;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::words::tame;
use serde_json::{Map, Value, json};

pub use self::health::{Health, HealthStatus, Record};
pub use self::properties::{CLAIMS, MEMBER_PROPERTIES, Property, read as read_properties};
pub use self::said::is_said;
use crate::claims::SOURCE_LABEL;
use crate::cluster_profile::{CONFIG as EXEC_EXTENSION, GROUP, KIND, MANAGER, MANAGER_LABEL, VERSIONS};
use crate::fields::{field, text, texts};
use crate::ocm;

/// Label of profiles: their cluster's set.
pub const SET_LABEL: &str = "multicluster.x-k8s.io/clusterset";
/// The source whose Secrets copy the labels of Open Cluster Management's clusters.
const OCM_SOURCE: &str = "ocm";
/// Annotation of profiles: the namespace of the clusters' Secrets. Two gateways of one hub may
/// publish into one namespace: neither removes or rewrites the other's profiles.
pub const PLACE_ANNOTATION: &str = "cluster.core.oam.dev/secret-namespace";
/// Type of the condition.
const HEALTHY: &str = "ControlPlaneHealthy";
/// Limit of a name in an Event, in characters.
const LONGEST_TOLD: usize = 63;

/// How clients reach the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAddress {
    /// URL without a slash at its end.
    pub url: String,
    /// PEM; none if clients use their system's roots.
    pub ca: Option<Vec<u8>>,
}

/// A registered cluster, according to its Secret's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub name: ClusterName,
    alias: String,
    set: Option<String>,
    labels: BTreeMap<String, String>,
}

/// What was last seen of the member.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservedMember {
    pub health: Option<Health>,
    /// Version of the API server. None: not seen since this program started.
    pub version: Option<String>,
    /// Properties that the member reports. None: not seen since this program started.
    pub properties: Option<Vec<Property>>,
}

/// The writer of an existing profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    We,
    /// Another manager, or another gateway, named by its clusters' namespace; in words.
    Other(String),
}

// === impl Registered ===

impl Registered {
    /// None if the cluster cannot have a profile. The hub itself has none: it stores the profiles.
    pub fn read(name: &str, labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Option<Self> {
        if !labels.contains_key(CREDENTIAL_TYPE_LABEL) || name == LOCAL {
            return None;
        }
        let name = ClusterName::parse(name).ok()?;
        // For other sources, the label is only what a person wrote on an object: nothing checks
        // whether the cluster may be in the set, as Open Cluster Management does.
        let may_have_ocms = labels.get(SOURCE_LABEL).is_none_or(|source| source == OCM_SOURCE);
        let ocms = labels.get(ocm::SET_LABEL).filter(|_| may_have_ocms);
        let set = labels.get(SET_LABEL).or(ocms).filter(|set| !set.is_empty());
        Some(Self {
            name,
            alias: annotations.get(ALIAS_ANNOTATION).cloned().unwrap_or_default(),
            set: set.cloned(),
            labels: labels.clone(),
        })
    }

    /// The profile without its status, for server-side apply. `place` is the namespace of the
    /// clusters' Secrets. `uid` is the uid of the existing profile, if any: with another uid it is
    /// another object.
    pub fn object(&self, namespace: &str, place: &str, uid: Option<&str>) -> Value {
        let mut labels = json!({MANAGER_LABEL: MANAGER});
        if let Some(set) = &self.set {
            labels[SET_LABEL] = set.as_str().into();
        }
        let mut profile = self.frame(namespace, uid);
        profile["metadata"]["labels"] = labels;
        profile["metadata"]["annotations"] = json!({PLACE_ANNOTATION: place});
        profile["spec"] = json!({"clusterManager": {"name": MANAGER}});
        if !self.alias.is_empty() {
            profile["spec"]["displayName"] = self.alias.as_str().into();
        }
        profile
    }

    /// The profile's status, for server-side apply. `before` is the existing profile, which
    /// contains what this program has not seen since it started; `now` is RFC 3339.
    pub fn status(
        &self,
        namespace: &str,
        gateway: &GatewayAddress,
        seen: &ObservedMember,
        before: &Value,
        now: &str,
    ) -> Value {
        let mut status = Map::new();
        status.insert("conditions".into(), json!([condition(seen.health.as_ref(), before, now)]));
        let version = seen.version.as_deref().or_else(|| text(before, "status.version.kubernetes").ok());
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            status.insert("version".into(), json!({"kubernetes": version}));
        }
        let told = match &seen.properties {
            Some(told) => told.clone(),
            None => properties::published(before),
        };
        let properties = properties::all(self.name.as_str(), &self.labels, told);
        status.insert("properties".into(), properties.iter().map(Property::document).collect());
        status.insert("accessProviders".into(), json!([{"name": MANAGER, "cluster": self.cluster(gateway)}]));
        let uid = text(before, "metadata.uid").ok().filter(|uid| !uid.is_empty());
        let mut profile = self.frame(namespace, uid);
        profile["status"] = Value::Object(status);
        profile
    }

    /// The cluster from which the SIG's library builds a client. The library reads server, CA,
    /// proxy and extensions, but no `tls-server-name`.
    fn cluster(&self, gateway: &GatewayAddress) -> Value {
        let path = format!("/apis/{}/{}/clustergateways/{}/proxy", api::GROUP, api::VERSION, self.name);
        let mut cluster = json!({
            "server": format!("{}{path}", gateway.url),
            // Plugins choose the credential by this name.
            "extensions": [{"name": EXEC_EXTENSION, "extension": {"clusterName": self.name.as_str()}}],
        });
        if let Some(ca) = &gateway.ca {
            cluster["certificate-authority-data"] = STANDARD.encode(ca).into();
        }
        cluster
    }

    fn frame(&self, namespace: &str, uid: Option<&str>) -> Value {
        let mut metadata = json!({"name": self.name.as_str(), "namespace": namespace});
        if let Some(uid) = uid {
            metadata["uid"] = uid.into();
        }
        json!({"apiVersion": format!("{GROUP}/{}", VERSIONS[0]), "kind": KIND, "metadata": metadata})
    }
}

/// The condition for the observed health; before any observation, it keeps what the profile says.
fn condition(health: Option<&Health>, before: &Value, now: &str) -> Value {
    let said = field(before, "status.conditions").and_then(|list| conditions::find(list, HEALTHY));
    let health = match (health, said) {
        (Some(health), _) => health.clone(),
        (None, Some(said)) => return said.clone(),
        (None, None) => Health::not_probed(),
    };
    let status = health.state.as_str();
    // The time of the change, not of the observation.
    let since = conditions::since(said, &status.into(), now);
    json!({
        "type": HEALTHY, "status": status, "reason": health.reason(), "message": health.message,
        "lastTransitionTime": since,
    })
}

/// The owner of a profile. Ours has our name in its label and in its spec, and belongs to the
/// clusters in the namespace `place`. A profile without that annotation is of an unknown gateway,
/// which is ours unless there are two.
pub fn owner(profile: &Value, place: &str) -> Owner {
    let manager = text(profile, "spec.clusterManager.name").unwrap_or_default();
    let labels = texts(profile, "metadata.labels").unwrap_or_default();
    let label = labels.get(MANAGER_LABEL).map(String::as_str).unwrap_or_default();
    let told = |text: &str| tame(&text.chars().take(LONGEST_TOLD).collect::<String>());
    if manager != MANAGER {
        return Owner::Other(format!("cluster manager {:?}", told(manager)));
    }
    if label != MANAGER {
        return Owner::Other(format!("a profile without the label {MANAGER_LABEL}={MANAGER}"));
    }
    let annotations = texts(profile, "metadata.annotations").unwrap_or_default();
    match annotations.get(PLACE_ANNOTATION) {
        Some(other) if other != place => Owner::Other(format!("the gateway of namespace {:?}", told(other))),
        _ => Owner::We,
    }
}

#[cfg(test)]
mod tests;
