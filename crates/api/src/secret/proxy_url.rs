//! The data key `proxy-url`: the forward proxy on the way to a member.

use std::fmt;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use secrecy::{ExposeSecret as _, SecretString};

use super::endpoint::{canonical_host, split_port};

/// A forward proxy. Its password is not printable.
#[derive(Debug, Clone)]
pub struct ProxyUrl {
    pub scheme: ProxyScheme,
    /// Lower-case DNS name, IPv4 address or IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    pub credentials: Option<ProxyCredentials>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyScheme {
    /// Unencrypted `CONNECT`.
    Http,
    /// `CONNECT` inside TLS. The proxy's certificate is verified against the system's roots.
    Https,
    /// RFC 1928. The proxy resolves the member's name, as with Go's `socks5`.
    Socks5,
}

/// User name and password, percent-decoded.
#[derive(Debug, Clone)]
pub struct ProxyCredentials {
    pub user: String,
    pub password: SecretString,
}

/// Why a URL is not a valid proxy. Each text follows the key's name and a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidProxyUrl {
    #[error("the URL's scheme must be http, https or socks5: write http://[USER:PASSWORD@]HOST:PORT")]
    Scheme,
    #[error("the URL must be visible ASCII without white space: percent-encode user and password")]
    Characters,
    #[error("the URL's user and password must be valid percent-encoded UTF-8 of at most 255 bytes each")]
    Credentials,
    #[error("the URL's host is missing, or not a DNS name or IP address (IPv6 in brackets)")]
    Host,
    #[error("the URL must end after host and port")]
    Path,
}

/// The longest user name or password in SOCKS5 (RFC 1929 §2).
const LONGEST: usize = 255;

// === impl ProxyUrl ===

impl ProxyUrl {
    pub fn parse(url: &str) -> Result<Self, InvalidProxyUrl> {
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidProxyUrl::Characters);
        }
        let (scheme, rest) = url.split_once("://").ok_or(InvalidProxyUrl::Scheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => ProxyScheme::Http,
            "https" => ProxyScheme::Https,
            "socks5" | "socks5h" => ProxyScheme::Socks5,
            _ => return Err(InvalidProxyUrl::Scheme),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.contains(['/', '?', '#', '\\']) {
            return Err(InvalidProxyUrl::Path);
        }
        let (credentials, authority) = match rest.rsplit_once('@') {
            Some((credentials, authority)) => (Some(ProxyCredentials::parse(credentials)?), authority),
            None => (None, rest),
        };
        let authority = authority.to_ascii_lowercase();
        let (host, port) = split_port(&authority).map_err(|_| InvalidProxyUrl::Host)?;
        let host = canonical_host(host).map_err(|_| InvalidProxyUrl::Host)?;
        Ok(Self { scheme, host, port: port.unwrap_or(scheme.default_port()), credentials })
    }

    /// The URL as it was written, with its password.
    pub fn exposed(&self) -> SecretString {
        self.with(encoded).into()
    }

    /// The URL as it was written, with the password replaced by `xxxxx`, like Go's `url.Redacted`.
    pub fn redacted(&self) -> String {
        self.with(|_| "xxxxx".to_owned())
    }

    fn with(&self, shown: impl FnOnce(&str) -> String) -> String {
        let plain = self.to_string();
        let (Some(login), Some((scheme, authority))) = (&self.credentials, plain.split_once("://")) else {
            return plain;
        };
        let password = login.password.expose_secret();
        let password = if password.is_empty() { String::new() } else { format!(":{}", shown(password)) };
        format!("{scheme}://{}{password}@{authority}", encoded(&login.user))
    }
}

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

impl PartialEq for ProxyUrl {
    fn eq(&self, other: &Self) -> bool {
        (self.scheme, &self.host, self.port) == (other.scheme, &other.host, other.port)
            && self.credentials == other.credentials
    }
}

impl Eq for ProxyUrl {}

/// Omits user and password.
impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        write!(f, "{}://{host}:{}", self.scheme.as_str(), self.port)
    }
}

// === impl ProxyCredentials ===

impl ProxyCredentials {
    fn parse(text: &str) -> Result<Self, InvalidProxyUrl> {
        let (user, password) = text.split_once(':').unwrap_or((text, ""));
        let decode = |text| {
            let text = percent_decode_str(text).decode_utf8().ok()?;
            (text.len() <= LONGEST).then(|| text.into_owned())
        };
        let user = decode(user).ok_or(InvalidProxyUrl::Credentials)?;
        let password = decode(password).ok_or(InvalidProxyUrl::Credentials)?;
        Ok(Self { user, password: password.into() })
    }
}

impl PartialEq for ProxyCredentials {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user && self.password.expose_secret() == other.password.expose_secret()
    }
}

impl Eq for ProxyCredentials {}

// === impl ProxyScheme ===

impl ProxyScheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    /// The port that Go's `net/http` dials if the URL has none.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 => 1080,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_whole() {
        let proxy = ProxyUrl::parse("http://jane:p%40ss:w@Proxy.example:3128/").expect("a proxy");
        assert_eq!((proxy.scheme, proxy.host.as_str(), proxy.port), (ProxyScheme::Http, "proxy.example", 3128));
        let credentials = proxy.credentials.as_ref().expect("credentials");
        assert_eq!((credentials.user.as_str(), credentials.password.expose_secret()), ("jane", "p@ss:w"));
        assert_eq!(proxy.to_string(), "http://proxy.example:3128");
        assert!(!format!("{proxy:?}").contains("p@ss"));
        assert_eq!(proxy.exposed().expose_secret(), "http://jane:p%40ss%3Aw@proxy.example:3128");
        assert_eq!(proxy.redacted(), "http://jane:xxxxx@proxy.example:3128");
        let port = |url| ProxyUrl::parse(url).map(|proxy| proxy.port);
        assert_eq!(port("https://p"), Ok(443));
        assert_eq!(port("socks5://[::1]"), Ok(1080));
        assert_eq!(port("socks5h://10.0.0.1:1"), Ok(1));
    }

    #[test]
    fn what_is_no_proxy_is_refused() {
        use InvalidProxyUrl as E;
        for (url, error) in [
            ("proxy:3128", E::Scheme),
            ("ftp://p", E::Scheme),
            ("socks4://p", E::Scheme),
            ("http://p /", E::Characters),
            ("http://", E::Host),
            ("http://u:p@", E::Host),
            ("http://p:0", E::Host),
            ("http://p/path", E::Path),
            ("http://p?x", E::Path),
            ("http://u:%ff@p", E::Credentials),
        ] {
            assert_eq!(ProxyUrl::parse(url).err(), Some(error), "{url}");
        }
    }
}
