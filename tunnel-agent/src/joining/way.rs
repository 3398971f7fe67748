//! Where the hub is, as a kubeconfig says, and the proxy on the way there.

use std::path::Path;

use hub::client::{Address, HubClientError, address};
use hub::through::proxy_url;
use secrecy::{ExposeSecret as _, SecretString};

/// What a kubeconfig says of its hub, without a credential for it.
#[derive(Debug, Clone, Default)]
pub struct HubWay {
    pub address: Address,
    /// The `proxy-url` as it stands there: it may hold a password, without which the proxy lets
    /// nobody through. [`Address`] has it without.
    pub proxy: Option<SecretString>,
}

// === impl HubWay ===

impl PartialEq for HubWay {
    fn eq(&self, other: &Self) -> bool {
        let proxy = |way: &Self| way.proxy.as_ref().map(|proxy| proxy.expose_secret().to_owned());
        self.address == other.address && proxy(self) == proxy(other)
    }
}

impl HubWay {
    pub async fn read(kubeconfig: &Path) -> Result<Self, HubClientError> {
        let address = address(Some(kubeconfig)).await?;
        Ok(Self { address, proxy: proxy_url(kubeconfig).map(SecretString::from) })
    }

    pub fn url(&self) -> &str {
        &self.address.url
    }
}
