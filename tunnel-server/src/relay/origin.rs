//! A frontend's connection: its identity, whether it may still open streams, and how many are open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use auth::{ClientCa, Peer};
use net::permit::Permit;
use tokio::net::unix::UCred;
use tunnel::{Hop, Reason, Refusal};

/// One frontend's connection.
#[derive(Debug)]
pub struct Origin {
    who: ClientIdentity,
    open: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum ClientIdentity {
    /// Over TLS. Each `CONNECT` checks the certificate against the CA in use at that moment.
    Certified { peer: Box<Peer>, authorities: Arc<ClientCa> },
    /// Over the Unix socket, whose file mode admitted it. Formatted only when the log needs it.
    Local(Option<UCred>),
}

// === impl Origin ===

impl Origin {
    pub fn certified(peer: Peer, authorities: Arc<ClientCa>) -> Self {
        Self { who: ClientIdentity::Certified { peer: Box::new(peer), authorities }, open: Arc::default() }
    }

    /// `peer` appears only in the log.
    pub fn local(peer: Option<UCred>) -> Self {
        Self { who: ClientIdentity::Local(peer), open: Arc::default() }
    }

    /// Whether the frontend may open streams now.
    pub fn judge(&self) -> Result<(), Refusal> {
        let ClientIdentity::Certified { peer, authorities } = &self.who else { return Ok(()) };
        authorities.judge(peer).map_err(|why| {
            let message = format!("the frontend's certificate is no longer accepted: {why}; connect with a new one");
            Refusal::new(Hop::Server, Reason::Forbidden, message)
        })
    }

    /// A permit for one more stream, if fewer than `most` are open.
    pub fn permit(&self, most: usize) -> Result<Permit<AtomicUsize>, Refusal> {
        Permit::of(&self.open, most).ok_or_else(|| {
            let message = format!("this connection has {most} streams open, which is its limit: use another");
            Refusal::new(Hop::Server, Reason::Limit, message)
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            ClientIdentity::Certified { peer, .. } => peer.address().fmt(f),
            ClientIdentity::Local(None) => f.write_str("unix socket"),
            ClientIdentity::Local(Some(peer)) => match peer.pid() {
                Some(pid) => write!(f, "unix socket, process {pid} of user {}", peer.uid()),
                None => write!(f, "unix socket, user {}", peer.uid()),
            },
        }
    }
}
