//! The beginning of a term: nothing is done before the watches' state matches the hub. Otherwise a
//! work that ended meanwhile would be applied again, and nothing would remove its objects.

use delivery::work::hub_hash;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::reflector::store::Writer;
use net::backoff::Backoff;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::applied::Agent;
use super::work::WORKS;
use super::{Part, watches};
use crate::feed::{crd, follow};
use crate::parts::catch_up::catch_up;
use crate::parts::hub_calls::LeaderClient;
use crate::raw::Meta;

/// Precedes the hub's UID in the ID of its controllers.
const AGENT_ID: &str = "cluster-gateway-controllers";

/// Requests to the watches of the hub to start again.
#[derive(Default)]
pub struct Watches {
    works: Notify,
    clusters: Notify,
}

/// Our identity on members. It distinguishes even two hubs with the same URL.
pub async fn agent(hub: &LeaderClient, url: Option<&str>) -> Agent {
    let api: Api<Meta<Namespace>> = Api::all(hub.client.clone());
    let mut failures = 0;
    loop {
        match hub.read(api.get("kube-system")).await {
            Ok(found) => {
                let uid = found.metadata.uid.unwrap_or_default();
                let hub_hash = hub_hash(url.unwrap_or(&uid));
                return Agent { hub_hash, id: format!("{AGENT_ID}-{uid}") };
            }
            Err(error) => tracing::warn!(%error, "cannot read namespace kube-system: delivery waits for it"),
        }
        // The whole part waits for this, as for a watch.
        sleep(Backoff::WATCH.wait(failures)).await;
        failures = failures.saturating_add(1);
    }
}

// === impl Watches ===

impl Watches {
    /// Follows both kinds. Never ends.
    pub async fn run(&self, part: &Part, mut writer: Writer<DynamicObject>) {
        tokio::join!(self.works(part, &mut writer), self.clusters(part));
    }

    async fn works(&self, part: &Part, writer: &mut Writer<DynamicObject>) {
        loop {
            tokio::select! {
                biased;
                () = self.works.notified() => {}
                () = watches::works(part, writer) => {}
            }
        }
    }

    async fn clusters(&self, part: &Part) {
        loop {
            tokio::select! {
                biased;
                () = self.clusters.notified() => {}
                () = watches::clusters(part) => {}
            }
        }
    }

    /// Completes when works may be processed. For works, it lists their metadata; for clusters,
    /// only a new list shows which exist.
    pub async fn begin(&self, part: &Part) {
        part.clusters.begin();
        self.clusters.notify_one();
        let works = async {
            let resource = crd::served(&WORKS, &part.hub.client).await;
            follow::stored(&part.store).await;
            let api = Api::all_with(part.hub.client.clone(), &resource);
            catch_up(&api, part, || self.works.notify_one()).await;
        };
        tokio::join!(works, part.clusters.are_listed());
    }
}
