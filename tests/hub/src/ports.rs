//! Free TCP ports on loopback for programs that cannot be asked to choose one themselves.
//!
//! A port is free when nobody answers there; another process may take it before its user does. Binding it to find out was
//! rejected: a child that is being started holds a copy of the listener for a moment, and the port stays taken. Staying below the range from which
//! the system takes ports for outgoing connections (32768 on Linux) makes that rare, and starting at a place that depends
//! on the process makes two runs side by side unlikely to meet.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, bail};

const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;
/// Ports that one run may ask for before it could meet its neighbour.
const SHARE: u32 = 48;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A port where nobody listened a moment ago and which was not handed out by this process before.
pub fn free() -> Result<u16> {
    let start = u16::try_from(std::process::id().wrapping_mul(SHARE) % u32::from(COUNT))?;
    for _ in 0..COUNT {
        let offset = (u32::from(start) + u32::from(NEXT.fetch_add(1, Ordering::Relaxed))) % u32::from(COUNT);
        let port = FIRST + u16::try_from(offset)?;
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return Ok(port);
        }
    }
    bail!("no free port between {FIRST} and {}", FIRST + COUNT)
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
