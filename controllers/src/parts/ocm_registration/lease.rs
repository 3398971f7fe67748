//! The Lease that an agent renews: made with the acceptance, and read before a silence is reported.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, ResourceExt as _};
use register::csr::CLUSTER_LABEL;
use register::ocm::heartbeat::LEASE;
use serde_json::Value;

use super::beats::Beats;
use super::hub_calls::{CallError, LeaderClient, found, now_millis, renewed};
use super::renewal::Renewal;
use crate::raw::{large, meta};

/// Of one cluster.
pub struct AgentLease<'a> {
    pub hub: &'a LeaderClient,
    pub beats: &'a Beats,
    pub name: &'a str,
    pub cluster: &'a Value,
}

/// What the hub says of a Lease that the watch takes for old.
#[derive(Debug, PartialEq, Eq)]
pub enum Life {
    Renewed,
    Silent,
    /// There is no Lease any more.
    Gone,
}

// === impl AgentLease ===

impl AgentLease<'_> {
    /// Reads the Lease, because our own watch may hang, and does not see one without its label.
    pub async fn confirm(&self, grace: i64) -> Result<Life, CallError> {
        let api: Api<Renewal> = Api::namespaced(self.hub.client.clone(), self.name);
        let Some(lease) = found(self.hub.read(api.get(LEASE)).await)? else {
            self.beats.forget(self.name);
            return Ok(Life::Gone);
        };
        if let Some(renewed) = lease.renewed {
            self.beats.see(self.name, renewed, Some(self.cluster));
        }
        let is_silent = self.beats.of(self.name, grace).is_some_and(|beat| beat.silent_from(grace) <= now_millis());
        Ok(if is_silent { Life::Silent } else { Life::Renewed })
    }

    pub async fn create(&self) -> Result<(), CallError> {
        let api: Api<Lease> = Api::namespaced(self.hub.client.clone(), self.name);
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(LEASE.to_owned()),
                labels: Some([(CLUSTER_LABEL.to_owned(), self.name.to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(LEASE.to_owned()),
                renew_time: Some(MicroTime(Timestamp::now())),
                ..LeaseSpec::default()
            }),
        };
        match self.hub.write(api.create(&PostParams::default(), &lease)).await {
            Err(error) if error.is_conflict() => self.label(error).await,
            Err(error) => Err(error),
            Ok(created) => {
                // Until the watch reports it, each look at the cluster would create it again.
                if let Some(renewed) = renewed(&created) {
                    self.beats.see_first(self.name, renewed, Some(self.cluster));
                }
                Ok(())
            }
        }
    }

    /// One is there that the watch does not see: not yet, or not without its label. Its contents
    /// are written as they came: the hub takes times that this program cannot read.
    async fn label(&self, conflict: CallError) -> Result<(), CallError> {
        let resource = ApiResource::erase::<Lease>(&());
        let api: Api<DynamicObject> = Api::namespaced_with(self.hub.client.clone(), self.name, &resource);
        let Some(mut lease) = found(self.hub.read(meta::get_object(&api, LEASE)).await)? else {
            return Err(conflict);
        };
        // Metadata that cannot be read whole must not be written whole: read again when its time is
        // over.
        if large::marked(&lease).is_some() {
            self.beats.see_unrenewed(self.name, Some(self.cluster));
            return Ok(());
        }
        if lease.labels().contains_key(CLUSTER_LABEL) {
            return Ok(());
        }
        lease.labels_mut().insert(CLUSTER_LABEL.to_owned(), self.name.to_owned());
        // With its version: the agent may have renewed it meanwhile.
        self.hub.write(api.replace(LEASE, &PostParams::default(), &lease)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::Method;
    use parking_lot::Mutex;
    use serde_json::json;

    use super::*;
    use crate::scripted;

    /// Its time is one that a hub takes and this program cannot read.
    const UNREADABLE: &str = "9999-12-31T23:59:59.000000Z";

    type Stored = Arc<Mutex<Option<Value>>>;

    /// A hub with one place for a Lease.
    fn hub(stored: &Stored) -> LeaderClient {
        let stored = Arc::clone(stored);
        LeaderClient::scripted(move |head, sent| {
            let mut lease = stored.lock();
            Some(match (&head.method, lease.clone()) {
                (&Method::GET, Some(lease)) => (200, lease),
                (&Method::POST, Some(_)) => scripted::status(409, "AlreadyExists", "there is one"),
                (&Method::POST, None) | (&Method::PUT, Some(_)) => {
                    *lease = Some(sent.clone());
                    (200, sent)
                }
                _ => scripted::status(404, "NotFound", "there is none"),
            })
        })
    }

    fn unreadable() -> Value {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": LEASE, "namespace": "c1", "resourceVersion": "7"},
            "spec": {"renewTime": UNREADABLE, "holderIdentity": "agent"}})
    }

    /// Without it, the watch would not see that it is deleted, nor that it can be read again.
    #[tokio::test]
    async fn a_lease_that_cannot_be_read_gets_its_label_and_keeps_its_contents() {
        let (stored, beats) = (Stored::default(), Beats::default());
        let cluster = json!({});
        *stored.lock() = Some(unreadable());
        AgentLease { hub: &hub(&stored), beats: &beats, name: "c1", cluster: &cluster }.create().await.unwrap();
        let lease = stored.lock().clone().unwrap();
        assert_eq!(lease["metadata"]["labels"], json!({CLUSTER_LABEL: "c1"}));
        assert_eq!((&lease["metadata"]["resourceVersion"], &lease["spec"]), (&json!("7"), &unreadable()["spec"]));
    }

    /// The watch may be late, and the cluster is looked at again before.
    #[tokio::test]
    async fn a_lease_that_was_created_is_known_and_its_own_event_is_no_renewal() {
        let (stored, beats) = (Stored::default(), Beats::default());
        let cluster = json!({});
        AgentLease { hub: &hub(&stored), beats: &beats, name: "c1", cluster: &cluster }.create().await.unwrap();
        let grace = register::ocm::heartbeat::grace(&cluster);
        let known = beats.of("c1", grace).expect("no watch told of it");
        let seen: Lease = serde_json::from_value(stored.lock().clone().unwrap()).unwrap();
        assert!(!beats.see("c1", renewed(&seen).unwrap(), Some(&cluster)), "nothing to look at");
        assert_eq!(beats.of("c1", grace), Some(known));
        assert_eq!(known.is_synced, None, "the hub wrote its time, and no agent");
    }

    #[tokio::test]
    async fn a_lease_that_is_gone_is_no_silence_and_is_made_again() {
        let (stored, beats) = (Stored::default(), Beats::default());
        let (hub, cluster) = (hub(&stored), json!({"spec": {"leaseDurationSeconds": 1}}));
        let lease = AgentLease { hub: &hub, beats: &beats, name: "c1", cluster: &cluster };
        let grace = register::ocm::heartbeat::grace(&cluster);
        beats.see("c1", now_millis() - 2 * grace, Some(&cluster));
        *stored.lock() = Some(unreadable());
        assert_eq!(lease.confirm(grace).await.unwrap(), Life::Silent);
        *stored.lock() = None;
        assert_eq!(lease.confirm(grace).await.unwrap(), Life::Gone);
        assert!(beats.of("c1", grace).is_none(), "so it is made again");
        lease.create().await.unwrap();
        assert_eq!(lease.confirm(grace).await.unwrap(), Life::Renewed);
    }
}
