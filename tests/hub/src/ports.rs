//! Free TCP ports on loopback for programs that cannot choose one themselves, and this machine's
//! address for those that do not connect to loopback.
//!
//! A port counts as free when nothing listens there; another process may take it before its user
//! does. Binding it to find out was rejected: a child that is being started holds a copy of the
//! listener for a moment, and the port stays taken.

use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};

use anyhow::{Context as _, Result};

/// A port where nothing listened a moment ago and that this process has not returned before.
pub fn free() -> Result<u16> {
    let mut ports = kit::ports::numbers();
    ports
        .find(|port| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err())
        .context("somebody listens on every port")
}

/// This machine's address towards others. `None`: it has none besides loopback.
pub fn own_address() -> Result<Option<IpAddr>> {
    // Sends nothing: it only chooses the address. The destination is one for documentation.
    let outward = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    if outward.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).is_err() {
        return Ok(None);
    }
    Ok(Some(outward.local_addr()?.ip()).filter(|own| !own.is_loopback()))
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
