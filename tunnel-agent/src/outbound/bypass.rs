//! Hosts that are reached without the proxy: `NO_PROXY`, parsed as
//! `golang.org/x/net/http/httpproxy` does.

use std::net::IpAddr;

use crate::cidr::Cidr;

/// The default bypasses nothing.
#[derive(Debug, Default)]
pub(super) struct Bypass {
    /// `localhost` and loopback addresses: the environment's proxy is never used for them.
    local: bool,
    everything: bool,
    entries: Vec<Entry>,
}

#[derive(Debug)]
enum Entry {
    Range(Cidr),
    Address(IpAddr, Option<u16>),
    /// With its leading dot: all names with this suffix; and the name itself, unless the operator
    /// wrote the dot.
    Domain {
        suffix: String,
        itself: bool,
        port: Option<u16>,
    },
}

// === impl Bypass ===

impl Bypass {
    /// `list` is separated by commas. Invalid entries bypass nothing.
    pub(super) fn of_environment(list: &str) -> Self {
        let entries = list.split(',').map(|entry| entry.trim().to_ascii_lowercase());
        let (mut everything, mut understood) = (false, Vec::new());
        for entry in entries.filter(|entry| !entry.is_empty()) {
            if entry == "*" {
                everything = true;
            } else {
                understood.extend(Entry::parse(&entry));
            }
        }
        Self { local: true, everything, entries: understood }
    }

    pub(super) fn holds(&self, host: &str, port: u16) -> bool {
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let address = host.parse::<IpAddr>().ok();
        if self.local && (host == "localhost" || address.is_some_and(|address| address.is_loopback())) {
            return true;
        }
        self.everything || self.entries.iter().any(|entry| entry.holds(host, address, port))
    }
}

// === impl Entry ===

impl Entry {
    fn parse(entry: &str) -> Option<Self> {
        if let Ok(range) = entry.parse() {
            return Some(Self::Range(range));
        }
        let (host, port) = split_port(entry);
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        if let Ok(address) = bare.parse() {
            return Some(Self::Address(address, port));
        }
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        match host {
            "" => None,
            _ if host.starts_with('.') => Some(Self::Domain { suffix: host.to_owned(), itself: false, port }),
            _ => Some(Self::Domain { suffix: format!(".{host}"), itself: true, port }),
        }
    }

    fn holds(&self, host: &str, address: Option<IpAddr>, port: u16) -> bool {
        let on = |own: &Option<u16>| own.is_none_or(|own| own == port);
        match self {
            Self::Range(range) => address.is_some_and(|address| range.contains(address)),
            Self::Address(own, own_port) => address == Some(*own) && on(own_port),
            Self::Domain { suffix, itself, port: own_port } => {
                (host.ends_with(suffix.as_str()) || (*itself && host == &suffix[1..])) && on(own_port)
            }
        }
    }
}

/// `host:port`; an IPv6 address without brackets has no port.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    match entry.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_mean_what_they_mean_to_go() {
        for (list, host, held) in [
            ("", "tunnel.example", false),
            ("*", "tunnel.example", true),
            ("tunnel.example", "tunnel.example", true),
            ("tunnel.example", "a.TUNNEL.example.", true),
            ("tunnel.example", "othertunnel.example", false),
            (".example", "tunnel.example", true),
            (".tunnel.example", "tunnel.example", false),
            ("*.tunnel.example", "tunnel.example", false),
            ("*.tunnel.example", "a.tunnel.example", true),
            ("a, tunnel.example:8091 ,b", "tunnel.example", true),
            ("tunnel.example:443", "tunnel.example", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3:443", "10.1.2.3", false),
            ("[fd00::1]:8091", "fd00::1", true),
            ("fd00::1", "fd00::1", true),
            ("fd00::/8", "fd00::1", true),
            ("", "localhost", true),
            ("", "127.0.0.2", true),
            ("", "::1", true),
        ] {
            assert_eq!(Bypass::of_environment(list).holds(host, 8091), held, "{list:?} {host}");
        }
        assert!(!Bypass::default().holds("localhost", 8091), "a proxy given by flag is for every host");
    }
}
