//! Publishes a `ClusterProfile` for every registered cluster, so that clients with the SIG's
//! library reach it through the gateway.
//!
//! A registered cluster has a labelled Secret. This part watches the metadata of these Secrets, and
//! never reads their data. The gateway's own list has the same names, but needs another right, and
//! is later. The probe through the gateway shows whether a Secret is usable.

mod books;
mod publisher;
mod watches;
mod writer;

use std::sync::Arc;

use kube::runtime::reflector::store::Writer;
use net::follow::Complaints;
use register::cluster_profile::{GROUP, KIND, VERSIONS};
use tokio::time::sleep;

use self::publisher::Publisher;
use super::Context;
use super::gateway::{self, LOOK_AGAIN};
use crate::feed::crd::{self, Presence};
use crate::secrets::Meta;
use crate::sources::Kind;

const PROFILE: Kind = Kind { group: GROUP, name: KIND, plural: "clusterprofiles", versions: VERSIONS, is_custom: true };

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let mut presence = crd::follow(&PROFILE, context.hub.clone());
    let mut complaints = Complaints::default();
    loop {
        let gateway = match gateway::address(context.config).await {
            Ok(gateway) => gateway,
            Err(error) => {
                if let Some(reason) = complaints.new_cause(&error) {
                    tracing::error!(
                        reason,
                        "no ClusterProfile is published: how clients reach the gateway is not known"
                    );
                }
                sleep(LOOK_AGAIN).await;
                continue;
            }
        };
        complaints.clear();
        // The sender lives as long as this receiver.
        let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
        let resource = crd::served(&PROFILE, &context.hub).await;
        let publisher = Arc::new(Publisher::new(&context, gateway.clone(), resource));
        tokio::select! {
            () = work(&publisher) => {}
            () = gateway::changed(context.config, &gateway) => {}
            () = crd::leaves(&mut presence) => {}
        }
        context.metrics.profiles.clear();
    }
}

/// Runs the watches and the queue. Never ends.
async fn work(publisher: &Arc<Publisher>) {
    let writer = Writer::<Meta>::new(());
    let queue = Arc::clone(publisher).work(writer.as_reader());
    tokio::join!(watches::follow(publisher, writer), queue, Arc::clone(publisher).sweep());
}

#[cfg(test)]
mod tests;
