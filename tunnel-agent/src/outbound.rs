//! The way out to tunnel-servers: directly, or through the proxy that the operator or the
//! environment names.

mod bypass;

use std::fmt;
use std::path::PathBuf;

use api::secret::{InvalidProxyUrl, ProxyScheme, ProxyUrl};
use net::proxy::{Credentials, Protocol, Proxy};
use net::tls::client_files::{ClientFiles, ClientFilesError};

use self::bypass::Bypass;
use crate::files::Followed;

const PROXY: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const BYPASS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// How tunnel-servers are reached.
#[derive(Debug)]
pub struct Outbound {
    through: Option<ProxySetting>,
}

#[derive(Debug)]
struct ProxySetting {
    proxy: ProxyUrl,
    /// Where the proxy was configured, for the log.
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

    /// Through the proxy at `url`, regardless of the environment.
    pub fn through(url: &str, ca: Option<PathBuf>) -> Result<Self, InvalidProxyUrl> {
        Ok(Self::with(ProxyUrl::parse(url)?, "--proxy-url", Bypass::default(), ca))
    }

    /// The environment's settings for proxies, with the meaning that Go's programs give them
    /// (`golang.org/x/net/http/httpproxy`): `HTTPS_PROXY` and `NO_PROXY`, each in lower case if the
    /// upper-case variable is missing. Links are TLS, so `HTTP_PROXY` does not apply.
    ///
    /// `variable` looks up a variable. The error names the invalid variable without its value,
    /// which may hold a password.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>, ca: Option<PathBuf>) -> Result<Self, String> {
        let first = |names: [&'static str; 2]| {
            names
                .into_iter()
                .find_map(|name| variable(name).filter(|value| !value.is_empty()).map(|value| (name, value)))
        };
        let Some((name, url)) = first(PROXY) else { return Ok(Self::direct()) };
        // Without a scheme it is an HTTP proxy.
        let url = if url.contains("://") { url } else { format!("http://{url}") };
        let proxy = ProxyUrl::parse(&url).map_err(|error| format!("{name}: {error}"))?;
        let bypass = first(BYPASS).map_or_else(String::new, |(_, value)| value);
        Ok(Self::with(proxy, name, Bypass::of_environment(&bypass), ca))
    }

    fn with(proxy: ProxyUrl, source: &'static str, bypass: Bypass, ca: Option<PathBuf>) -> Self {
        let trust = Followed::new(ClientFiles { ca, identity: None });
        Self { through: Some(ProxySetting { proxy, source, bypass, trust }) }
    }

    /// Whether connections to `host:port` go through a proxy, which then resolves the name.
    pub fn is_proxied(&self, host: &str, port: u16) -> bool {
        self.through.as_ref().is_some_and(|through| !through.bypass.holds(host, port))
    }

    /// The proxy for `host:port`, if any. Its CA file is re-read if it changed.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read_from(variables: &[(&str, &str)]) -> Result<Outbound, String> {
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Outbound::of_environment(variable, None)
    }

    #[test]
    fn upper_case_comes_first_and_http_proxy_is_about_others() {
        let proxy = |variables: &[(&str, &str)]| read_from(variables).unwrap().to_string();
        assert_eq!(proxy(&[("HTTPS_PROXY", "http://a:1"), ("https_proxy", "http://b:1")]), "http://a:1 (HTTPS_PROXY)");
        assert_eq!(proxy(&[("HTTPS_PROXY", ""), ("https_proxy", "b:3128")]), "http://b:3128 (https_proxy)");
        assert_eq!(proxy(&[("HTTP_PROXY", "http://a:1"), ("NO_PROXY", "x")]), "none");
    }

    #[test]
    fn hosts_of_no_proxy_are_reached_directly() {
        let outbound = read_from(&[("https_proxy", "socks5://u:pw@p:1"), ("no_proxy", "tunnel.example")]).unwrap();
        assert!(!outbound.is_proxied("tunnel.example", 8091) && outbound.is_proxied("other.example", 8091));
        assert!(outbound.proxy("tunnel.example", 8091).unwrap().is_none());
        assert_eq!(outbound.proxy("other.example", 8091).unwrap().unwrap().to_string(), "socks5://p:1");
    }

    #[test]
    fn a_wrong_url_is_named_without_its_password() {
        let error = read_from(&[("HTTPS_PROXY", "ftp://user:hunter2@p")]).unwrap_err();
        assert!(error.starts_with("HTTPS_PROXY: ") && !error.contains("hunter2"), "{error}");
    }
}
