//! Connections to hubs, by the agent's own ways out of its network.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hub::through::{Dial, Way};
use net::dial;
use net::opened::Opened;
use tokio::time::Instant;

use crate::outbound::Outbound;

const TIMEOUT: Duration = Duration::from_secs(10);

/// By `outbound`, unless a kubeconfig names a proxy of its own.
pub fn through(outbound: Arc<Outbound>) -> Dial {
    Arc::new(move |way| {
        let outbound = Arc::clone(&outbound);
        Box::pin(async move { connect(&outbound, way).await })
    })
}

async fn connect(outbound: &Outbound, Way { host, port, proxy }: Way) -> io::Result<Opened> {
    let deadline = Instant::now() + TIMEOUT;
    let own = proxy.map(|url| Outbound::through(&url, None)).transpose().map_err(io::Error::other)?;
    let proxy = own.as_ref().unwrap_or(outbound).proxy(&host, port).map_err(io::Error::other)?;
    match proxy {
        Some(proxy) => proxy.connect(&host, port, deadline).await.map_err(io::Error::other),
        None => dial::connect(&host, port, deadline).await.map(Opened::Tcp).map_err(io::Error::other),
    }
}
