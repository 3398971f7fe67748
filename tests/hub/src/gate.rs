//! A relay for the hub's connections to the gateway, which can hold back what the hub sends: then a
//! gateway finds everything at once, as if it had not been scheduled for a moment. It counts
//! connections. Several gateways take turns, and those that do not accept are skipped.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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

/// Bytes per read. More than that waits in the sockets' buffers.
const PIECE: usize = 64 * 1024;

/// Time for a target to accept: those that do are on this machine.
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

/// While it lives, no bytes pass from the clients to the target; the other direction continues.
pub struct Held<'a>(&'a Gate);

// === impl Gate ===

impl Gate {
    /// Relays to `target`, which need not listen yet.
    pub fn start(target: SocketAddr) -> Result<Self> {
        Self::start_among(vec![target])
    }

    /// Relays to `targets` in turn.
    pub fn start_among(targets: Vec<SocketAddr>) -> Result<Self> {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), targets)
    }

    /// The same at another address of this machine.
    pub fn start_at(own: IpAddr, targets: Vec<SocketAddr>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind((own, 0))).context("no port for the gate")?;
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

    /// Its listening port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// New connections go to these targets, like those of a Service to its ready endpoints; open
    /// connections stay.
    pub fn set_targets(&self, targets: Vec<SocketAddr>) {
        *self.targets.write() = targets;
    }

    /// Connections accepted so far.
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
    /// Does not wait, so that it can be dropped anywhere.
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
