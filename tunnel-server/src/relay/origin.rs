//! A frontend's connection: who it is, whether it may still ask, how much it has open.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use auth::{ClientCa, Peer};
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
    /// Over the Unix socket: its file's mode let it in. Put into words only where the log wants them.
    Local(Option<UCred>),
}

/// A stream's place among those of its connection, given back when dropped.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

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

    /// A place for one stream more, if there are less than `most`.
    pub fn place(&self, most: usize) -> Result<Place, Refusal> {
        let more = |open| (open < most).then_some(open + 1);
        match self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Place(Arc::clone(&self.open))),
            Err(open) => {
                let message = format!("this connection has {open} streams open, the most it may have: use another");
                Err(Refusal::new(Hop::Server, Reason::Limit, message))
            }
        }
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

// === impl Place ===

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
