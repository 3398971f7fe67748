//! One value of `--allow`: `HOST`, `HOST:PORT`, `CIDR` or `CIDR:PORT`; IPv6 with a port in
//! brackets, `[fd00::/8]:443`.

use std::net::IpAddr;

use tunnel::{Destination, DestinationError};

use super::canonical;
use crate::cidr::{Cidr, CidrError};

/// What is allowed, and on which port; on all ports without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    what: HostPattern,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HostPattern {
    /// In lower case, without the root's dot.
    Host(String),
    /// A single address is a range of one.
    Range(Cidr),
}

/// Why a text is no rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    #[error("{0}")]
    Range(CidrError),
    #[error("{0}")]
    Host(DestinationError),
    #[error("a ']' is missing, or something other than :PORT follows it")]
    Brackets,
}

// === impl Rule ===

impl Rule {
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let (what, port) = split(text)?;
        let port = port.map(parse_port).transpose()?;
        if what.contains('/') {
            return Ok(Self { what: HostPattern::Range(what.parse().map_err(RuleError::Range)?), port });
        }
        if let Ok(address) = what.parse::<IpAddr>() {
            return Ok(Self { what: HostPattern::Range(Cidr::single(address)), port });
        }
        // Any port works here, because only the host is checked.
        let host = Destination::new(what, 1).map_err(RuleError::Host)?;
        Ok(Self { what: HostPattern::Host(canonical(host.host())), port })
    }

    /// Whether the rule names `host`, which is canonical.
    pub(super) fn names(&self, host: &str, port: u16) -> bool {
        self.has(port) && matches!(&self.what, HostPattern::Host(name) if name == host)
    }

    pub(super) fn holds(&self, address: IpAddr, port: u16) -> bool {
        self.has(port) && matches!(&self.what, HostPattern::Range(range) if range.contains(address))
    }

    /// Whether the rule can allow names by their addresses.
    pub(super) fn is_range_with(&self, port: u16) -> bool {
        self.has(port) && matches!(self.what, HostPattern::Range(_))
    }

    /// Whether the rule covers nothing outside `range`.
    pub(super) fn is_within(&self, range: &Cidr) -> bool {
        matches!(&self.what, HostPattern::Range(own) if range.covers(own))
    }

    fn has(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
}

fn split(text: &str) -> Result<(&str, Option<&str>), RuleError> {
    if let Some(rest) = text.strip_prefix('[') {
        let (what, rest) = rest.split_once(']').ok_or(RuleError::Brackets)?;
        return match rest.strip_prefix(':') {
            _ if rest.is_empty() => Ok((what, None)),
            Some(port) => Ok((what, Some(port))),
            None => Err(RuleError::Brackets),
        };
    }
    match text.split_once(':') {
        Some((what, port)) if !port.contains(':') => Ok((what, Some(port))),
        // No port, or IPv6 without brackets, which cannot have one.
        _ => Ok((text, None)),
    }
}

fn parse_port(text: &str) -> Result<u16, RuleError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0).ok_or(RuleError::Host(DestinationError::Port))
}
