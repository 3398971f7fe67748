//! Clusters whose Secret has only the credential: their `ManagedCluster` has the location.
//!
//! Keeps the Secrets, to rebuild a cluster when only its `ManagedCluster` changes.

use std::collections::HashMap;
use std::sync::Arc;

use api::hub_object::SecretObject;
use api::managed_cluster::{ClientConfig, ManagedCluster};
use api::secret::{ClusterSpec, SecretError, SecretRules, SecretView};

use super::managed::ManagedClusters;

/// The `ManagedCluster`s, and the Secrets of their clusters.
pub struct Ocm {
    pub managed: Arc<ManagedClusters>,
    kept: HashMap<String, LocatedSecret>,
}

struct LocatedSecret {
    secret: SecretObject,
    /// The location with which the cluster was made.
    state: ManagedLocation,
}

/// The part of a `ManagedCluster` that counts.
#[derive(PartialEq, Eq)]
enum ManagedLocation {
    /// There is no `ManagedCluster`.
    Nothing,
    /// Not accepted: its agent may write anything into it, so nothing of it is kept.
    NotAccepted,
    At(Vec<ClientConfig>),
}

// === impl Ocm ===

impl Ocm {
    pub fn new(managed: Arc<ManagedClusters>) -> Self {
        Self { managed, kept: HashMap::new() }
    }

    /// The cluster of a Secret and its current `ManagedCluster`.
    pub fn spec(&mut self, view: &SecretView<'_>, rules: SecretRules) -> Result<ClusterSpec, SecretError> {
        let current = self.managed.current();
        let managed = current.get(view.name).map(Arc::as_ref);
        let state = ManagedLocation::of(managed);
        let is_news = self.kept.get(view.name).is_none_or(|kept| kept.state != state);
        if is_news && state == ManagedLocation::NotAccepted {
            tracing::warn!(
                cluster = view.name,
                next_step = "if it is the right one, accept it (spec.hubAcceptsClient: true), otherwise delete it",
                "the ManagedCluster of this name is not accepted: the Secret's endpoint applies"
            );
        }
        self.kept.insert(view.name.to_owned(), LocatedSecret { secret: SecretObject::of(view), state });
        managed.map_or_else(|| ClusterSpec::from_secret(view, rules), |managed| managed.cluster(view, rules))
    }

    pub fn forget(&mut self, name: &str) {
        self.kept.remove(name);
    }

    /// Removes and returns the Secrets of clusters whose location has changed.
    pub fn outdated(&mut self) -> Vec<SecretObject> {
        let current = self.managed.current();
        let outdated = self.kept.extract_if(|name, kept| !kept.state.is_of(current.get(name).map(Arc::as_ref)));
        outdated.map(|(_, kept)| kept.secret).collect()
    }
}

// === impl ManagedLocation ===

impl ManagedLocation {
    fn of(managed: Option<&ManagedCluster>) -> Self {
        match managed.map(ManagedCluster::addresses) {
            None => Self::Nothing,
            Some(None) => Self::NotAccepted,
            Some(Some(addresses)) => Self::At(addresses.to_vec()),
        }
    }

    /// Whether `managed` still has this location. Copies nothing, because every change of one
    /// object checks all clusters.
    fn is_of(&self, managed: Option<&ManagedCluster>) -> bool {
        match (self, managed.map(ManagedCluster::addresses)) {
            (Self::Nothing, None) | (Self::NotAccepted, Some(None)) => true,
            (Self::At(before), Some(Some(now))) => before == now,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
