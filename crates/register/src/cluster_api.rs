//! Clusters of Cluster API (`cluster.x-k8s.io`), by their kubeconfig Secrets.
//!
//! A user that may create Secrets in a namespace decides what its Clusters are: where requests for
//! them go, and with which identity. This module cannot prevent that. It still refuses what Cluster
//! API and its providers would not write: a name alone, or a Secret that outlived its Cluster,
//! makes no cluster. <https://cluster-api.sigs.k8s.io/developer/providers/contracts/control-plane>

use api::secret::ClusterSecret;
use serde_json::Value;

use crate::fields::{field, flag, text};
use crate::kubeconfig;
use crate::reading::{Object, Owner, Reading, SecretObject, SecretReference, Waiting, group_version};
use crate::{Refused, Rules, labels};

pub const GROUP: &str = "cluster.x-k8s.io";
pub const KIND: &str = "Cluster";
/// Versions of [`GROUP`] that are read. The fields used here are the same in all of them.
pub const VERSIONS: &[&str] = &["v1beta2", "v1beta1"];
/// Label of all Secrets of a Cluster, with its name.
pub const CLUSTER_LABEL: &str = "cluster.x-k8s.io/cluster-name";
/// Annotation that pauses its object, with any value.
const PAUSED: &str = "cluster.x-k8s.io/paused";
/// Suffix of the name of a Cluster's kubeconfig Secret.
const SUFFIX: &str = "-kubeconfig";
const KEY: &str = "value";
const TYPE: &str = "cluster.x-k8s.io/secret";

/// The kubeconfig Secret of the Cluster `name`.
pub fn kubeconfig_secret(namespace: &str, name: &str) -> SecretReference {
    SecretReference { namespace: namespace.to_owned(), name: format!("{name}{SUFFIX}") }
}

/// The name of the Cluster whose kubeconfig a Secret called `secret` holds. A Cluster's other
/// Secrets are ignored: its certificate authorities, `-etcd`, `-sa`, and the `-user-kubeconfig` of
/// providers, which has its Cluster's label but another name.
pub fn cluster_of<'a>(secret: &'a str, cluster_label: &str) -> Option<&'a str> {
    secret.strip_suffix(SUFFIX).filter(|name| *name == cluster_label)
}

/// Reads `cluster`, whose kubeconfig Secret is `secret`, if that exists. A Cluster that is being
/// deleted stays registered until it is gone.
pub fn read(cluster: &Value, secret: Option<&SecretObject>, rules: &Rules) -> Reading {
    registered(cluster, secret, rules).into()
}

fn registered(cluster: &Value, secret: Option<&SecretObject>, rules: &Rules) -> Result<ClusterSecret, Reading> {
    let object = Object::whole_of(cluster, GROUP, KIND, VERSIONS)?;
    if object.annotations.contains_key(PAUSED) || flag(cluster, "spec.paused")? {
        return Err(Reading::Paused);
    }
    let missing = if object.is_deleting { Waiting::Leaving } else { Waiting::NoKubeconfig };
    let secret = secret.ok_or(missing)?;
    check(secret, &object, ControlPlane::of(cluster)?)?;
    let kubeconfig = secret.value(KEY).ok_or(Refused::NoKey(KEY))?;
    let mut registered = kubeconfig::cluster(kubeconfig, rules)?;
    registered.labels = labels::taken(&object.labels);
    Ok(registered)
}

/// Whether Cluster API, its providers, or a person on their behalf would write such a Secret.
fn check(secret: &SecretObject, cluster: &Object, control_plane: Option<ControlPlane<'_>>) -> Result<(), Refused> {
    let namespace = cluster.namespace.as_deref().unwrap_or_default();
    if secret.reference() != kubeconfig_secret(namespace, &cluster.name) {
        return Err(Refused::Kind);
    }
    if secret.r#type != TYPE && !secret.is_opaque() {
        return Err(Refused::Type(TYPE));
    }
    if secret.labels.get(CLUSTER_LABEL) != Some(&cluster.name) {
        return Err(Refused::Label(CLUSTER_LABEL));
    }
    let is_cluster = |owner: &Owner| {
        (owner.group.as_str(), owner.kind.as_str()) == (GROUP, KIND)
            && (&owner.name, &owner.uid) == (&cluster.name, &cluster.uid)
    };
    let is_control_plane = |owner: &Owner| control_plane.is_some_and(|named| named.is(owner));
    if secret.owners.iter().any(|owner| is_cluster(owner) || is_control_plane(owner)) {
        Ok(())
    } else {
        Err(Refused::Owner)
    }
}

/// `spec.controlPlaneRef`. Control planes of some providers are in another group.
#[derive(Clone, Copy)]
struct ControlPlane<'a> {
    group: &'a str,
    kind: &'a str,
    name: &'a str,
}

// === impl ControlPlane ===

impl<'a> ControlPlane<'a> {
    /// `v1beta2` writes `apiGroup`, `v1beta1` `apiVersion`.
    fn of(cluster: &'a Value) -> Result<Option<Self>, Refused> {
        if field(cluster, "spec.controlPlaneRef").is_none() {
            return Ok(None);
        }
        let api_group = text(cluster, "spec.controlPlaneRef.apiGroup")?;
        let of_version = group_version(text(cluster, "spec.controlPlaneRef.apiVersion")?).0;
        let kind = text(cluster, "spec.controlPlaneRef.kind")?;
        let name = text(cluster, "spec.controlPlaneRef.name")?;
        let group = if api_group.is_empty() { of_version } else { api_group };
        Ok((!kind.is_empty()).then_some(Self { group, kind, name }))
    }

    fn is(self, owner: &Owner) -> bool {
        (self.group, self.kind, self.name) == (owner.group.as_str(), owner.kind.as_str(), owner.name.as_str())
    }
}

#[cfg(test)]
mod tests;
