//! Parses the URL of a member's API server, once and strictly.
//!
//! The URL decides where a powerful credential goes, so the parser guesses nothing: no user info,
//! query or fragment, no dot segments (a path must not escape the base path), and the host is one
//! name or address.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::path::has_dot_segment;

/// The location of a member's API server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    pub scheme: Scheme,
    /// Lower-case DNS name, IPv4 address or IPv6 address without brackets.
    pub host: String,
    pub port: u16,
    /// Empty, or `/…` without a trailing `/`. Percent-encoded as written. The proxied path is
    /// appended to it.
    pub base_path: String,
    /// The value of `Host` and `:authority`: the host as written, in lower case, with the port only
    /// if the URL contains it.
    pub authority: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Https,
    Http,
}

/// Why a URL is not a valid endpoint. Each text follows the key's name and a colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEndpoint {
    #[error("the URL has no scheme: write https://HOST:PORT")]
    NoScheme,
    #[error("the URL's scheme must be https: write https://HOST:PORT")]
    OtherScheme,
    #[error("http would send the credential in the clear and is not allowed here: write https://HOST:PORT")]
    Http,
    #[error(
        "the URL must be visible ASCII without white space, quotes and backslashes: percent-encode the path, use a host's ASCII name"
    )]
    Characters,
    #[error("the URL must not have a user or password: store the credential under its own key")]
    UserInfo,
    #[error("the URL must not have a query or fragment: remove everything from '?' or '#' on")]
    QueryOrFragment,
    #[error("the URL's host is missing, or not a DNS name or IP address (IPv6 in brackets): write https://HOST:PORT")]
    Host,
    #[error("the URL's port must be a number from 1 to 65535")]
    Port,
    #[error("the URL's path must not contain '.' or '..' segments")]
    DotSegment,
}

// === impl Endpoint ===

impl Endpoint {
    /// Parses `https://HOST[:PORT][/PATH]`. Accepts `http://` only if `allow_http`.
    pub fn parse(url: &str, allow_http: bool) -> Result<Self, InvalidEndpoint> {
        if !url.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'\\' | b'"' | b'<' | b'>' | b'`')) {
            return Err(InvalidEndpoint::Characters);
        }
        let (scheme, rest) = url.split_once("://").ok_or(InvalidEndpoint::NoScheme)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "https" => Scheme::Https,
            "http" if allow_http => Scheme::Http,
            "http" => return Err(InvalidEndpoint::Http),
            _ => return Err(InvalidEndpoint::OtherScheme),
        };
        if rest.contains(['?', '#']) {
            return Err(InvalidEndpoint::QueryOrFragment);
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(InvalidEndpoint::UserInfo);
        }
        if has_dot_segment(path) {
            return Err(InvalidEndpoint::DotSegment);
        }
        let authority = authority.to_ascii_lowercase();
        let (host, port) = split_port(&authority)?;
        Ok(Self {
            scheme,
            host: canonical_host(host)?,
            port: port.unwrap_or(scheme.default_port()),
            base_path: path.trim_end_matches('/').to_owned(),
            authority,
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme.as_str(), self.authority, self.base_path)
    }
}

/// Splits `host[:port]`. The host keeps its brackets.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<u16>), InvalidEndpoint> {
    let after_brackets = authority.rfind(']').map_or(0, |at| at + 1);
    let Some(colon) = authority[after_brackets..].find(':') else { return Ok((authority, None)) };
    let (host, port) = authority.split_at(after_brackets + colon);
    let digits = &port[1..];
    // An IPv6 address without brackets has more colons. Report that and not an invalid port.
    if digits.contains(':') {
        return Err(InvalidEndpoint::Host);
    }
    // u16's own parser would accept a sign.
    let valid = digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(port) if valid && port > 0 => Ok((host, Some(port))),
        _ => Err(InvalidEndpoint::Port),
    }
}

pub(super) fn canonical_host(host: &str) -> Result<String, InvalidEndpoint> {
    if let Some(inner) = host.strip_prefix('[') {
        let inner = inner.strip_suffix(']').ok_or(InvalidEndpoint::Host)?;
        return inner.parse::<Ipv6Addr>().map(|address| address.to_string()).map_err(|_| InvalidEndpoint::Host);
    }
    // A name with a number as its last label is meant as an IPv4 address (WHATWG URL, "ends in a
    // number"). Refuse the spellings (`127.1`, `0x7f.1`) that resolvers read in different ways.
    if ends_in_number(host) && host.parse::<Ipv4Addr>().is_err() {
        return Err(InvalidEndpoint::Host);
    }
    if is_dns_name(host) { Ok(host.to_owned()) } else { Err(InvalidEndpoint::Host) }
}

fn ends_in_number(host: &str) -> bool {
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    hex || last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Letters, digits, `-` and `_` (common in company networks) in labels of 1 to 63 bytes. Also
/// matches IPv4 addresses.
pub(super) fn is_dns_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

// === impl Scheme ===

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
        }
    }

    pub fn default_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
        }
    }
}
