//! A frontend's connection: who it is, whether it may still ask, how much it has open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use auth::{ClientCa, Peer};
use net::permit::Permit;
use tokio::net::unix::UCred;
use tunnel::{Hop, Reason, Refusal};

/// See the module's text.
#[derive(Debug)]
pub struct Origin {
    who: Who,
    open: Arc<AtomicUsize>,
}

#[derive(Debug)]
enum Who {
    /// Over TLS, with a certificate that is judged at each `CONNECT` by the CA of that moment.
    Certified { peer: Box<Peer>, door: Arc<ClientCa> },
    /// Over the Unix socket: its file's mode let it in. Put into words only where the log wants
    /// them.
    Local(Option<UCred>),
}

// === impl Origin ===

impl Origin {
    pub fn certified(peer: Peer, door: Arc<ClientCa>) -> Self {
        Self { who: Who::Certified { peer: Box::new(peer), door }, open: Arc::default() }
    }

    /// `peer` is for the log.
    pub fn local(peer: Option<UCred>) -> Self {
        Self { who: Who::Local(peer), open: Arc::default() }
    }

    /// Whether it may ask for streams now.
    pub fn judge(&self) -> Result<(), Refusal> {
        let Who::Certified { peer, door } = &self.who else { return Ok(()) };
        door.judge(peer).map_err(|why| {
            let message = format!("the frontend's certificate is not accepted any more: {why}; connect with a new one");
            Refusal::new(Hop::Server, Reason::Forbidden, message)
        })
    }

    /// For one stream more, if there are less than `most`.
    pub fn permit(&self, most: usize) -> Result<Permit<AtomicUsize>, Refusal> {
        Permit::of(&self.open, most).ok_or_else(|| {
            let message = format!("this connection has {most} streams open, the most it may have: use another");
            Refusal::new(Hop::Server, Reason::Limit, message)
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Who::Certified { peer, .. } => peer.address().fmt(f),
            Who::Local(None) => f.write_str("unix socket"),
            Who::Local(Some(peer)) => match peer.pid() {
                Some(pid) => write!(f, "unix socket, process {pid} of user {}", peer.uid()),
                None => write!(f, "unix socket, user {}", peer.uid()),
            },
        }
    }
}
