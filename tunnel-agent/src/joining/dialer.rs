//! The hub's address according to a kubeconfig, and how it is dialled: by the agent's own ways out
//! of its network, or through the kubeconfig's proxy.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hub::client::{Address, HubClientError, address};
use hub::through::{Dial, DialTarget, Wording, wording};
use net::dial;
use net::opened::Opened;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::time::Instant;

use crate::outbound::Outbound;

/// Timeout of a dial, proxy included.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A kubeconfig's settings for its hub, without a credential.
#[derive(Debug, Clone, Default)]
pub struct HubWay {
    pub address: Address,
    /// The same, in the kubeconfig's spelling.
    pub wording: Wording,
    /// The `proxy-url` as written: it may hold a password, which the proxy requires. [`Address`]
    /// has it without.
    pub proxy: Option<SecretString>,
}

// === impl HubWay ===

impl PartialEq for HubWay {
    fn eq(&self, other: &Self) -> bool {
        let proxy = |way: &Self| way.proxy.as_ref().map(|proxy| proxy.expose_secret().to_owned());
        self.address == other.address && self.wording == other.wording && proxy(self) == proxy(other)
    }
}

impl HubWay {
    pub async fn read(kubeconfig: &Path) -> Result<Self, HubClientError> {
        let address = address(Some(kubeconfig)).await?;
        let (wording, proxy) = wording(kubeconfig).unwrap_or_default();
        Ok(Self { address, wording, proxy: proxy.map(SecretString::from) })
    }

    pub fn url(&self) -> &str {
        &self.address.url
    }
}

/// Dials by `outbound`, unless a kubeconfig names a proxy of its own.
pub fn through(outbound: Arc<Outbound>) -> Dial {
    Arc::new(move |way| {
        let outbound = Arc::clone(&outbound);
        Box::pin(async move { connect(&outbound, way).await })
    })
}

async fn connect(outbound: &Outbound, DialTarget { host, port, proxy }: DialTarget) -> io::Result<Opened> {
    let deadline = Instant::now() + TIMEOUT;
    let own = proxy.map(|url| Outbound::through(&url, None)).transpose().map_err(io::Error::other)?;
    let proxy = own.as_ref().unwrap_or(outbound).proxy(&host, port).map_err(io::Error::other)?;
    match proxy {
        Some(proxy) => proxy.connect(&host, port, deadline).await.map_err(io::Error::other),
        None => dial::connect(&host, port, deadline).await.map(Opened::Tcp).map_err(io::Error::other),
    }
}
