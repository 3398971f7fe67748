//! Listening sockets, one per core, all on the same port.

use std::io;
use std::net::SocketAddr;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections the kernel holds while a core is busy.
const BACKLOG: i32 = 4096;

/// Binds `count` sockets to `address` with `SO_REUSEPORT`, so that the kernel spreads connections over them.
/// Port 0 chooses one free port for all. The sockets are non-blocking; the caller hands each to its own runtime.
pub fn reuse_port(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    let first = bind(address)?;
    let address = first.local_addr()?;
    let mut listeners = vec![first];
    for _ in 1..count {
        listeners.push(bind(address)?);
    }
    Ok(listeners)
}

fn bind(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Restarting on the same port must not wait for old connections in TIME_WAIT.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_zero_is_one_port_for_all() {
        let listeners = reuse_port("127.0.0.1:0".parse().unwrap(), 3).unwrap();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert!(ports[0] != 0 && ports.iter().all(|port| *port == ports[0]), "{ports:?}");
    }
}
