//! Reads `ClusterProfile`s of other inventory managers with the operator's providers.

use std::sync::Arc;

use kube::api::DynamicObject;
use register::Rules;
use register::cluster_profile::{self, Providers};
use register::reading::{Reading, SecretObject, SecretReference};
use serde_json::Value;

use crate::calls::value;

use super::{Kind, Reader, keep};

pub const KIND: Kind = Kind {
    group: cluster_profile::GROUP,
    name: cluster_profile::KIND,
    plural: "clusterprofiles",
    versions: cluster_profile::VERSIONS,
    is_custom: true,
};

pub struct ClusterProfiles {
    pub rules: Arc<Rules>,
    pub providers: Arc<Providers>,
}

// === impl ClusterProfiles ===

impl Reader for ClusterProfiles {
    fn refers_to(&self, _: &Value) -> Vec<SecretReference> {
        Vec::new()
    }

    fn read(&self, object: &Value, _: &[Option<SecretObject>]) -> Reading {
        cluster_profile::read(object, &self.providers, &self.rules)
    }

    /// Skips profiles that this program publishes.
    fn is_of_source(&self, object: &DynamicObject) -> bool {
        !cluster_profile::is_own(&value(object))
    }

    fn prune(&self, object: &mut DynamicObject) {
        let kept = [["spec", "clusterManager"], ["status", "accessProviders"], ["status", "credentialProviders"]];
        keep(object, &kept);
    }
}
