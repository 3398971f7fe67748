//! The way out to tunnel-servers: directly, or through the proxy that the operator or the
//! environment names.

mod bypass;
pub mod environment;

use std::fmt;
use std::path::PathBuf;

use api::secret::{InvalidProxyUrl, ProxyScheme, ProxyUrl};
use net::proxy::{Credentials, Protocol, Proxy};
use net::tls::client_files::{ClientFiles, ClientFilesError};

use self::bypass::Bypass;
use crate::files::Followed;

/// How tunnel-servers are reached.
#[derive(Debug)]
pub struct Outbound {
    through: Option<ProxySetting>,
}

#[derive(Debug)]
struct ProxySetting {
    proxy: ProxyUrl,
    /// Where the operator said so, for the log.
    source: &'static str,
    bypass: Bypass,
    /// Trust in an `https://` proxy.
    trust: Followed,
}

// === impl Outbound ===

impl Outbound {
    pub fn direct() -> Self {
        Self { through: None }
    }

    /// Through the proxy at `url`, whatever the environment says.
    pub fn through(url: &str, ca: Option<PathBuf>) -> Result<Self, InvalidProxyUrl> {
        Ok(Self::with(ProxyUrl::parse(url)?, "--proxy-url", Bypass::default(), ca))
    }

    fn with(proxy: ProxyUrl, source: &'static str, bypass: Bypass, ca: Option<PathBuf>) -> Self {
        let trust = Followed::new(ClientFiles { ca, identity: None });
        Self { through: Some(ProxySetting { proxy, source, bypass, trust }) }
    }

    /// Whether connections to `host:port` go through a proxy, which then resolves the name.
    pub fn is_proxied(&self, host: &str, port: u16) -> bool {
        self.through.as_ref().is_some_and(|through| !through.bypass.holds(host, port))
    }

    /// The proxy towards `host:port`, if there is one. Its CA file is read anew if it changed.
    pub fn proxy(&self, host: &str, port: u16) -> Result<Option<Proxy>, ClientFilesError> {
        let through = self.through.as_ref().filter(|_| self.is_proxied(host, port));
        through.map(ProxySetting::proxy).transpose()
    }
}

/// For the log: without user and password.
impl fmt::Display for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.through {
            Some(ProxySetting { proxy, source, .. }) => write!(f, "{proxy} ({source})"),
            None => f.write_str("none"),
        }
    }
}

// === impl ProxySetting ===

impl ProxySetting {
    fn proxy(&self) -> Result<Proxy, ClientFilesError> {
        let protocol = match self.proxy.scheme {
            ProxyScheme::Http => Protocol::Http,
            ProxyScheme::Https => Protocol::Https(self.trust.read()?.0),
            ProxyScheme::Socks5 => Protocol::Socks5,
        };
        let credentials = self.proxy.credentials.as_ref();
        Ok(Proxy {
            protocol,
            host: self.proxy.host.clone(),
            port: self.proxy.port,
            credentials: credentials
                .map(|login| Credentials { user: login.user.clone(), password: login.password.clone() }),
        })
    }
}
