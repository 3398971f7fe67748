//! Where the hub is, as a kubeconfig says, and the proxy on the way there.

use std::path::Path;

use hub::client::{Address, HubClientError, address};
use hub::through::proxy_url;
use secrecy::SecretString;

/// What a kubeconfig says of its hub, without a credential for it.
#[derive(Debug, Clone, Default)]
pub struct HubWay {
    pub address: Address,
    /// The `proxy-url` as it stands there: it may hold a password, without which the proxy lets
    /// nobody through. [`Address`] has it without.
    pub proxy: Option<SecretString>,
}

// === impl HubWay ===

impl HubWay {
    pub async fn read(kubeconfig: &Path) -> Result<Self, HubClientError> {
        let address = address(Some(kubeconfig)).await?;
        Ok(Self { address, proxy: proxy_url(kubeconfig).map(SecretString::from) })
    }

    pub fn url(&self) -> &str {
        &self.address.url
    }
}
