//! How clients reach the gateway. Parts write it into what they publish.

use std::time::Duration;

use hub::client::{self, HubClientError};
use register::profile::GatewayAddress;
use tokio::time::sleep;

use crate::args::Config;

/// Between two looks: the gateway's CA may be another one.
pub const LOOK_AGAIN: Duration = Duration::from_mins(1);

/// As far as flags and files say it now.
pub async fn address(config: &Config) -> Result<GatewayAddress, HubClientError> {
    let hub = client::address(config.kubeconfig.as_deref()).await?;
    let gateway = &config.gateway;
    let ca = match &gateway.ca_file {
        Some(path) => Some(client::ca_file(path)?),
        None => hub.ca,
    };
    let url = gateway.url.as_deref().unwrap_or(&hub.url).trim_end_matches('/').to_owned();
    Ok(GatewayAddress { url, ca })
}

/// Completes when it is another.
pub async fn changed(config: &Config, known: &GatewayAddress) {
    loop {
        sleep(LOOK_AGAIN).await;
        // What cannot be read now stays as it was.
        if address(config).await.is_ok_and(|now| now != *known) {
            tracing::info!("the gateway's address or CA for clients changed: all objects that name it are rewritten");
            return;
        }
    }
}
