//! An address that cannot be connected to, and does not say so: every SYN is lost.
//!
//! A listener whose accept queue is full behaves so on loopback (Linux drops further SYNs, the
//! caller keeps retrying), without any privilege and without relying on how some outside address is
//! routed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Length asked for the accept queue; Linux admits one more.
const BACKLOG: u32 = 1;
/// Connections made at most while filling the queue.
const MAX_FILL: usize = 16;
/// A connection on loopback that takes longer than this will not come.
const REFUSED_AFTER: Duration = Duration::from_millis(250);

/// An address where connecting hangs until the caller gives up. It is freed when dropped.
#[derive(Debug)]
pub struct BlackHole {
    address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

// === impl BlackHole ===

impl BlackHole {
    /// Opens one and fills its queue.
    pub async fn start() -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into()).await
    }

    /// As [`BlackHole::start`], at a free loopback address of either family.
    pub async fn at(address: SocketAddr) -> Self {
        let socket = if address.is_ipv6() { TcpSocket::new_v6() } else { TcpSocket::new_v4() }.expect("a socket");
        socket.bind(address).expect("nobody listens there");
        let listener = socket.listen(BACKLOG).expect("a bound socket can listen");
        let address = listener.local_addr().expect("a bound socket has an address");
        let mut queue = Vec::new();
        while let Ok(connected) = tokio::time::timeout(REFUSED_AFTER, TcpStream::connect(address)).await {
            queue.push(connected.expect("loopback refuses nothing that listens"));
            assert!(queue.len() < MAX_FILL, "the accept queue takes more than {MAX_FILL} connections");
        }
        Self { address, _listener: listener, _queue: queue }
    }

    /// The address at which connecting hangs.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
