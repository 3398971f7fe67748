//! Publishes a `ClusterProfile` for every registered cluster, so that clients of the SIG's library
//! reach it through the gateway.
//!
//! Registered is what has a labelled Secret: their metadata is watched, and nothing of their data.
//! The gateway's own list would say the same with another right, and later. Whether a Secret can be
//! used, the gateway says when the member is probed through it.

mod books;
mod probe;
mod publisher;
mod watches;
mod writer;

use std::sync::Arc;
use std::time::Duration;

use hub::client::{self, HubClientError};
use net::follow::Complaints;
use register::cluster_profile::{GROUP, KIND, VERSIONS};
use register::profile::Way;
use tokio::time::sleep;

use self::publisher::Publisher;
use super::Context;
use crate::args::Config;
use crate::feed::crd::{self, Presence};
use crate::sources::Kind;

const PROFILE: Kind = Kind { group: GROUP, name: KIND, plural: "clusterprofiles", versions: VERSIONS, is_custom: true };
/// Between two looks at how clients reach the gateway: its CA may be another one.
const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// Runs until it is dropped.
pub async fn run(context: Context<'_>) {
    let mut presence = crd::follow(&PROFILE, context.hub.clone());
    let mut complaints = Complaints::default();
    loop {
        let way = match way(context.config).await {
            Ok(way) => way,
            Err(error) => {
                if let Some(reason) = complaints.new_cause(&error) {
                    tracing::error!(
                        reason,
                        "no ClusterProfile is published: nothing says how clients reach the gateway"
                    );
                }
                sleep(LOOK_AGAIN).await;
                continue;
            }
        };
        complaints.clear();
        // The sender lives as long as this does.
        let _ = presence.wait_for(|presence| *presence != Presence::Leaving).await;
        let resource = crd::served(&PROFILE, &context.hub).await;
        let publisher = Arc::new(Publisher::new(&context, way.clone(), resource));
        tokio::select! {
            () = publisher.run() => {}
            () = changes(context.config, &way) => {}
            () = crd::leaves(&mut presence) => {}
        }
        context.metrics.profiles.clear();
    }
}

/// How clients reach the gateway, as far as flags and files say it now.
async fn way(config: &Config) -> Result<Way, HubClientError> {
    let hub = client::address(config.kubeconfig.as_deref()).await?;
    let gateway = &config.gateway;
    let ca = match &gateway.ca_file {
        Some(path) => Some(client::ca_file(path)?),
        None => hub.ca,
    };
    let url = gateway.url.as_deref().unwrap_or(&hub.url).trim_end_matches('/').to_owned();
    Ok(Way { url, ca })
}

/// Completes when it is another.
async fn changes(config: &Config, known: &Way) {
    loop {
        sleep(LOOK_AGAIN).await;
        // What cannot be read now stays as it was.
        if way(config).await.is_ok_and(|now| now != *known) {
            tracing::info!("clients reach the gateway in another way now: all ClusterProfiles are rewritten");
            return;
        }
    }
}

#[cfg(test)]
mod tests;
