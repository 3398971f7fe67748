//! Listening sockets, one per core, all on the same port.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

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
/// `0.0.0.0` is every address of the machine, IPv6 ones too, as it is for Go's servers
/// (`favoriteAddrFamily` in `net/ipsock_posix.go`); where the kernel has no IPv6, IPv4 alone.
///
/// `SO_REUSEPORT` would let a second process of the same user listen too, and get half of the
/// connections without anybody noticing. So unless that is wanted, the port is tried without the
/// option first; two processes that start in the same instant can still slip through.
pub fn reuse_port(address: SocketAddr, count: usize, sharing: Sharing) -> io::Result<Vec<std::net::TcpListener>> {
    let address = of_both_families(address);
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

fn of_both_families(address: SocketAddr) -> SocketAddr {
    let every = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), address.port());
    // A port of its own shows whether there is IPv6; whether `address`'s is free is another
    // question.
    let has_ipv6 = || socket(SocketAddr::new(every.ip(), 0), false).is_ok();
    if address.ip() == Ipv4Addr::UNSPECIFIED && has_ipv6() { every } else { address }
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
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Whatever `net.ipv6.bindv6only` says.
        socket.set_only_v6(false)?;
    }
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

    #[tokio::test]
    async fn every_address_is_one_of_either_family() {
        if socket("[::1]:0".parse().unwrap(), false).is_err() {
            return;
        }
        let mut listeners = reuse_port("0.0.0.0:0".parse().unwrap(), 1, Sharing::Refused).unwrap();
        let listener = tokio::net::TcpListener::from_std(listeners.remove(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in ["127.0.0.1", "::1"] {
            let ip = ip.parse().unwrap();
            let client = tokio::net::TcpStream::connect(SocketAddr::new(ip, port)).await.unwrap();
            let (_, address) = crate::accept::tcp(&listener).await.unwrap();
            assert_eq!(address, client.local_addr().unwrap(), "IPv4 addresses as such");
        }
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
