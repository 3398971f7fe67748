//! Free TCP ports on loopback for programs that cannot choose one themselves.
//!
//! A port counts as free when nothing listens there; another process may take it before its user
//! does. Binding it to find out was rejected: a child that is being started holds a copy of the
//! listener for a moment, and the port stays taken.

use std::net::{Ipv4Addr, TcpStream};

use anyhow::{Context as _, Result};

/// A port where nothing listened a moment ago and that this process has not returned before.
pub fn free() -> Result<u16> {
    let mut ports = kit::ports::numbers();
    ports
        .find(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err())
        .context("somebody listens on every port")
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_is_handed_out_once_and_can_be_bound() {
        let (first, second) = (free().unwrap(), free().unwrap());
        assert_ne!(first, second);
        TcpListener::bind((Ipv4Addr::LOCALHOST, first)).unwrap();
    }
}
