//! A member that speaks bytes, for behaviour that no HTTP library has: cut answers, resets, strange
//! upgrades, silence.
//!
//! Each connection runs a list of [`Act`]s. TLS is an act like any other, so a script can also fail
//! before it.

mod run;
mod script;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use self::script::{Act, Service};

use self::run::Runner;
use crate::pki::{Authority, ClientAuth, Issued, Leaf, server_config};
use crate::wait::{AbortOnDrop, Signal};

/// Bytes received on one connection that are kept; further bytes are counted only.
const MAX_KEPT: usize = 8 << 20;
/// Connections remembered.
const MAX_CONNECTIONS: usize = 4096;

/// A running raw member. It stops, and closes what is open, when dropped.
#[derive(Debug)]
pub struct RawMember {
    address: SocketAddr,
    authority: Arc<Authority>,
    shared: Arc<Shared>,
    _task: AbortOnDrop,
}

/// One connection so far.
#[derive(Clone, Debug, Default)]
pub struct RawConnection {
    /// Everything received (inside TLS, once a script did [`Act::Tls`]), at most 8 MiB.
    pub received: Vec<u8>,
    /// Bytes received in all.
    pub bytes_in: u64,
    /// Bytes sent in all.
    pub bytes_out: u64,
    /// The request heads read by [`Act::ReadHead`], byte for byte, each with its blank line.
    pub heads: Vec<Bytes>,
    /// The caller ended its side (EOF or reset), as far as the script read.
    pub caller_closed: bool,
    /// The script came to its end; the connection is closed.
    pub ended: bool,
}

#[derive(Debug)]
struct Shared {
    serving: Issued,
    connections: Mutex<Vec<RawConnection>>,
    /// Heads that `next_head` has returned.
    taken: Mutex<usize>,
    signal: Signal,
}

// === impl RawMember ===

impl RawMember {
    /// Starts a member that runs `script` on each connection, numbered from 0 in order of
    /// acceptance.
    pub async fn start(script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static) -> Self {
        let authority = Arc::new(Authority::new("member-ca"));
        let serving = authority.issue(&Leaf::server("kube-apiserver").san("kubernetes.default.svc"));
        let shared =
            Arc::new(Shared { serving, connections: Mutex::default(), taken: Mutex::default(), signal: Signal::new() });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let task = AbortOnDrop(tokio::spawn(accept(listener, shared.clone(), script)));
        Self { address, authority, shared, _task: task }
    }

    /// Starts a member that does the same on every connection.
    pub async fn always(script: Vec<Act>) -> Self {
        Self::start(move |_| script.clone()).await
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `https://127.0.0.1:<port>`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The authority of the certificate that [`Act::Tls`] presents.
    pub fn authority(&self) -> &Arc<Authority> {
        &self.authority
    }

    /// The root certificate to trust, PEM.
    pub fn ca_pem(&self) -> String {
        self.authority.root_pem()
    }

    /// All connections so far, in order of acceptance.
    pub fn connections(&self) -> Vec<RawConnection> {
        self.shared.connections.lock().clone()
    }

    /// Number of accepted connections.
    pub fn connection_count(&self) -> usize {
        self.shared.connections.lock().len()
    }

    /// The next request head (in order of connections, then of heads) that this method has not
    /// returned yet; waits for one.
    pub async fn next_head(&self) -> Bytes {
        let next = || {
            let mut taken = self.shared.taken.lock();
            let head = self.shared.connections.lock().iter().flat_map(|one| &one.heads).nth(*taken).cloned()?;
            *taken += 1;
            Some(head)
        };
        self.shared.signal.until("a request head at the raw member", next).await
    }

    /// Waits until connection `number` fulfils `condition`, and returns it.
    pub async fn until(&self, number: usize, condition: impl Fn(&RawConnection) -> bool) -> RawConnection {
        let found = || self.shared.connections.lock().get(number).filter(|one| condition(one)).cloned();
        self.shared.signal.until(format_args!("a condition of raw connection {number}"), found).await
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, script: impl Fn(usize) -> Vec<Act>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((tcp, _)) = accepted else { continue };
                let number = shared.open();
                connections.spawn(Runner::new(tcp, number, shared.clone()).run(script(number)));
            },
            Some(_) = connections.join_next() => {},
        }
    }
}

// === impl Shared ===

impl Shared {
    fn open(&self) -> usize {
        let mut connections = self.connections.lock();
        assert!(connections.len() < MAX_CONNECTIONS, "a raw member remembers {MAX_CONNECTIONS} connections");
        connections.push(RawConnection::default());
        let number = connections.len() - 1;
        drop(connections);
        self.signal.notify();
        number
    }

    fn update(&self, number: usize, change: impl FnOnce(&mut RawConnection)) {
        change(&mut self.connections.lock()[number]);
        self.signal.notify();
    }

    fn tls(&self, alpn: &[&str]) -> Arc<rustls::ServerConfig> {
        server_config(&self.serving, ClientAuth::None, alpn)
    }
}

impl RawConnection {
    fn receive(&mut self, bytes: &[u8]) {
        let room = MAX_KEPT.saturating_sub(self.received.len());
        self.received.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.bytes_in += bytes.len() as u64;
    }
}

#[cfg(test)]
mod tests;
