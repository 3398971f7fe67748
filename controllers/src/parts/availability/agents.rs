//! Reads agents' Leases where no other part follows them, because the last report of an agent that
//! is gone must not stay true forever.

use std::collections::HashMap;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use parking_lot::Mutex;
use register::ocm::availability::{ObservedLease, patience};
use register::ocm::heartbeat::LEASE;
use serde_json::Value;
use tokio::time::Instant;

use crate::parts::hub_calls::{CallError, LeaderClient, found, renewed};
use crate::raw::meta;

/// The Lease of each cluster whose agent reports its availability.
#[derive(Default)]
pub struct Agents(Mutex<HashMap<String, ObservedLease>>);

// === impl Agents ===

impl Agents {
    /// Time until the agent of the cluster `name` counts as silent; zero if it does. Reads the
    /// Lease at most once per grace period. Fails if the hub does not return it.
    pub async fn left(&self, hub: &LeaderClient, name: &str, cluster: &Value) -> Result<Duration, CallError> {
        let grace = patience(cluster);
        let left = self.0.lock().get(name).map(|lease| lease.left(grace, Instant::now().into_std()));
        if let Some(left) = left.filter(|left| !left.is_zero()) {
            return Ok(left);
        }
        let api: Api<Lease> = Api::namespaced(hub.client.clone(), name);
        let lease = found(hub.read(meta::get(&api, LEASE)).await)?;
        let renewed = lease.and_then(|lease| renewed(&lease.object));
        let (now, mut leases) = (Instant::now().into_std(), self.0.lock());
        let lease = leases.entry(name.to_owned()).or_insert_with(|| ObservedLease::found(renewed, now));
        *lease = lease.seen(renewed, now);
        Ok(lease.left(grace, now))
    }

    pub fn forget(&self, name: &str) {
        self.0.lock().remove(name);
    }
}
