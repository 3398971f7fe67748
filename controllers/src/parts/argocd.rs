//! Publishes a cluster Secret for Argo CD of each accepted `ManagedCluster`. Its server is the
//! cluster's path on the gateway, and its credential is a token of a `ServiceAccount` of the hub.
//!
//! So Argo CD gets no credential of any member, and the hub decides its rights. The format is that
//! of Argo CD's declarative set-up (`docs/operator-manual/declarative-setup.md`).

mod inventory;
mod keeper;
mod publisher;
mod removal;
mod secret;
mod strays;
mod token;
mod watches;

use std::sync::Arc;

use kube::Api;
use kube::runtime::reflector::store::Writer;
use net::follow::Complaints;
use register::profile::GatewayAddress;
use tokio::sync::watch;
use tokio::time::sleep;

use self::inventory::Inventory;
use self::keeper::Keeper;
use self::publisher::Publisher;
use super::gateway::{self, LOOK_AGAIN};
use super::hub_calls::{self, LeaderClient};
use super::{Context, watched, worker};
use crate::args::{Argocd, PartName};
use crate::sources::MANAGED_CLUSTERS;
use crate::wakes::Wakes;

/// Condition in `/readyz`: clusters or Secrets are not listed yet. The log names the kind.
pub const UNLISTED: &str = "argocd-unlisted";
/// The part's name in `--enable` and in metrics.
const NAME: &str = PartName::Argocd.as_str();

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let Some(argocd) = &context.config.argocd else { return };
    let mut complaints = Complaints::default();
    loop {
        match gateway::address(context.config).await {
            Ok(gateway) => {
                complaints.clear();
                tokio::select! {
                    () = work(&context, argocd, gateway.clone()) => {}
                    () = gateway::changed(context.config, &gateway) => {}
                }
            }
            Err(error) => {
                if let Some(reason) = complaints.new_cause(&error) {
                    tracing::error!(
                        reason,
                        "no Secret for Argo CD is written: how clients reach the gateway is not known"
                    );
                }
                sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// Publishes the Secrets. Never ends.
async fn work(context: &Context<'_>, argocd: &Argocd, gateway: GatewayAddress) {
    let hub = LeaderClient::of(context);
    let wakes = Wakes::default();
    let inventory = Arc::new(Inventory::new(context.config.source_removal_limit, argocd));
    let writer = Writer::new(hub_calls::managed_clusters());
    let store = writer.as_reader();
    let publisher = Arc::new(Publisher {
        secrets: Api::namespaced(hub.client.clone(), &argocd.namespace),
        hub: hub.clone(),
        gateway,
        inventory: Arc::clone(&inventory),
        events: context.events.clone(),
        metrics: context.metrics.clone(),
        tries: worker::Tries::default(),
    });
    let (uid, account) = watch::channel(None);
    let keeper = Keeper { hub, argocd, inventory: &inventory, metrics: &context.metrics, wakes: &wakes };
    let queue = async {
        let [clusters, secrets] = &inventory.listed;
        tokio::join!(
            watched::listed(clusters, &MANAGED_CLUSTERS, &context.readiness, UNLISTED),
            watched::listed(secrets, &watches::SECRETS, &context.readiness, UNLISTED),
        );
        let publish = worker::run(Arc::clone(&publisher), wakes.clone(), store, hub_calls::managed_clusters());
        let strays = strays::run(&publisher, &wakes);
        tokio::join!(keeper.keep(account), removal::run(&publisher), strays, publish);
    };
    // Clears the metrics when this future is dropped.
    let _counting = context.metrics.counting(|metrics| metrics.argocd.clear());
    tokio::join!(watches::follow(&publisher, &wakes, writer), watches::follow_account(argocd, &publisher, uid), queue);
}
