//! What the hub sends to the gateway passes here, and can be held back: a gateway that was not
//! scheduled for a moment finds at once what came in that time. Connections are counted. Where
//! there are several gateways, they take turns, and who does not accept is passed over.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use parking_lot::RwLock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::time::timeout;

/// Of one read. What waits beyond it is in the sockets' buffers.
const PIECE: usize = 64 * 1024;

/// For a target to accept: those that do are on this machine.
const ACCEPT: Duration = Duration::from_secs(5);

/// A relay of TCP connections.
pub struct Gate {
    address: SocketAddr,
    targets: Arc<RwLock<Vec<SocketAddr>>>,
    shut: watch::Sender<bool>,
    accepted: Arc<AtomicUsize>,
    /// Relays until it is dropped.
    runtime: Option<Runtime>,
}

/// While it lives, nothing passes from the clients to the target; the other direction does.
pub struct Held<'a>(&'a Gate);

// === impl Gate ===

impl Gate {
    /// Relays to `target`, which need not be there yet.
    pub fn start(target: SocketAddr) -> Result<Self> {
        Self::start_among(vec![target])
    }

    /// Relays to `targets` by turns.
    pub fn start_among(targets: Vec<SocketAddr>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).context("no port for the gate")?;
        let (address, shut) = (listener.local_addr()?, watch::Sender::new(false));
        let (open, accepted) = (shut.subscribe(), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&accepted);
        let targets = Arc::new(RwLock::new(targets));
        let among = Arc::clone(&targets);
        runtime.spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let turn = count.fetch_add(1, Ordering::Relaxed);
                let mut targets = among.read().clone();
                let first = turn % targets.len().max(1);
                targets.rotate_left(first);
                tokio::spawn(relay(near, targets, open.clone())); // its errors are the ends' going
            }
        });
        Ok(Self { address, targets, shut, accepted, runtime: Some(runtime) })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Further connections go to these, as those of a Service do to its ready endpoints; those that
    /// are open stay.
    pub fn set_targets(&self, targets: Vec<SocketAddr>) {
        *self.targets.write() = targets;
    }

    /// Connections that came so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Holds back what clients send.
    pub fn hold(&self) -> Held<'_> {
        self.shut.send_replace(true);
        Held(self)
    }
}

impl Drop for Gate {
    /// Does not wait, so that this may happen anywhere.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

// === impl Held ===

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.shut.send_replace(false);
    }
}

async fn relay(near: TcpStream, targets: Vec<SocketAddr>, shut: watch::Receiver<bool>) -> Result<()> {
    let far = first_that_accepts(targets).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
    tokio::try_join!(held(near_reads, far_writes, shut), passed(far_reads, near_writes))?;
    Ok(())
}

async fn first_that_accepts(targets: Vec<SocketAddr>) -> Result<TcpStream> {
    for target in targets {
        if let Ok(Ok(far)) = timeout(ACCEPT, TcpStream::connect(target)).await {
            return Ok(far);
        }
    }
    bail!("nobody accepts")
}

async fn held(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut shut: watch::Receiver<bool>) -> Result<()> {
    let mut piece = vec![0; PIECE];
    loop {
        let length = from.read(&mut piece).await?;
        shut.wait_for(|shut| !shut).await?;
        if length == 0 {
            return Ok(to.shutdown().await?);
        }
        to.write_all(&piece[..length]).await?;
    }
}

async fn passed(mut from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
    copy(&mut from, &mut to).await?;
    Ok(to.shutdown().await?)
}
