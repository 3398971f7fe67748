//! Listening sockets, one per core, all on the same port.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections the kernel holds while a core is busy.
const BACKLOG: i32 = 4096;

/// Whether other processes may listen on the same port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// A port in use is an error.
    Refused,
    /// Connections are spread over all processes that share the port.
    Permitted,
}

/// Binds `count` sockets to `address` with `SO_REUSEPORT`, so that the kernel spreads connections
/// over them. Port 0 chooses one free port for all. The sockets are non-blocking; the caller hands
/// each to its own runtime.
///
/// `SO_REUSEPORT` would let a second process of the same user listen too, and get half of the
/// connections without anybody noticing. So unless that is wanted, the port is tried without the
/// option first; two processes that start in the same instant can still slip through.
pub fn reuse_port(address: SocketAddr, count: usize, sharing: Sharing) -> io::Result<Vec<std::net::TcpListener>> {
    if sharing == Sharing::Refused {
        drop(socket(address, false)?);
    }
    let first = bind(address)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address)?);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = socket(address, true)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(address: SocketAddr, reuse_port: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Restarting on the same port must not wait for old connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(reuse_port)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_one_port_for_all() {
        let listeners = reuse_port("127.0.0.1:0".parse().unwrap(), 3, Sharing::Refused).unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]), "{ports:?}");
    }

    #[test]
    fn a_port_in_use_is_refused_unless_sharing_is_permitted() {
        let taken = reuse_port("127.0.0.1:0".parse().unwrap(), 1, Sharing::Refused).unwrap();
        let address = taken[0].local_addr().unwrap();
        let error = reuse_port(address, 2, Sharing::Refused).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert_eq!(reuse_port(address, 2, Sharing::Permitted).unwrap().len(), 2);
        drop(taken);
    }
}
