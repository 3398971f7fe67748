//! Addresses: one network for all nodes and pods, so there are no routes between nodes.

use std::net::IpAddr;

/// Address family of a testbed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    /// IPv6 only.
    V6,
}

// === impl Family ===

impl Family {
    /// Address of a node; the first node's address is also that of all API servers.
    pub fn node(self, number: u8) -> IpAddr {
        let text = match self {
            Self::V4 => format!("10.244.0.{number}"),
            Self::V6 => format!("fd00:244::{number}"),
        };
        text.parse().expect("an address")
    }

    /// The node's address as written before a port.
    pub fn host(self, number: u8) -> String {
        match self.node(number) {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        }
    }

    /// Network of nodes and pods.
    pub fn network(self) -> &'static str {
        match self {
            Self::V4 => "10.244.0.0/16",
            Self::V6 => "fd00:244::/64",
        }
    }

    pub fn prefix(self) -> u8 {
        match self {
            Self::V4 => 16,
            Self::V6 => 64,
        }
    }

    /// The first and last address of a node's pods.
    pub fn pods(self, node: u8) -> (String, String) {
        match self {
            Self::V4 => (format!("10.244.{node}.2"), format!("10.244.{node}.254")),
            Self::V6 => (format!("fd00:244::{node}:2"), format!("fd00:244::{node}:fffe")),
        }
    }

    /// The network that contains every address.
    pub fn any(self) -> &'static str {
        match self {
            Self::V4 => "0.0.0.0/0",
            Self::V6 => "::/0",
        }
    }
}
