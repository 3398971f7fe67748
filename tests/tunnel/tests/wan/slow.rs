//! A long way made of a process: a relay for TCP that holds everything back for half a round trip.
//!
//! Each connection has as many bytes in flight as TCP keeps with Linux's default buffers: without
//! that bound the direct connection would be as fast as memory, which no connection over such a
//! distance is.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep_until};

/// There and back.
pub(crate) const ROUND_TRIP: Duration = Duration::from_millis(100);
/// Bytes of one direction in flight until their acknowledgement is back. Measured between two
/// namespaces with this round trip and default settings: 2.8 MB (`tcp_wmem` allows 4 MiB,
/// bookkeeping included).
const UNDER_WAY: u32 = 2_800_000;
/// Reads in flight: enough for any size of them.
const READS: usize = 4096;
/// Of one read.
const PIECE: u32 = 64 * 1024;

type Held = (Instant, Vec<u8>, OwnedSemaphorePermit);

/// Relays connections to `target`, slowly, for as long as `runtime` lives; returns where.
pub(crate) fn start(runtime: &Runtime, target: SocketAddr) -> Result<SocketAddr> {
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    runtime.spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(relay(near, target)); // its errors are the ends' going
        }
    });
    Ok(address)
}

async fn relay(near: TcpStream, target: SocketAddr) -> Result<()> {
    let far = TcpStream::connect(target).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ((near_reads, near_writes), (far_reads, far_writes)) = (near.into_split(), far.into_split());
    tokio::try_join!(direction(near_reads, far_writes), direction(far_reads, near_writes))?;
    Ok(())
}

async fn direction(from: OwnedReadHalf, to: OwnedWriteHalf) -> Result<()> {
    let (sender, receiver) = mpsc::channel(READS);
    tokio::try_join!(take(from, sender), give(receiver, to))?;
    Ok(())
}

async fn take(mut from: OwnedReadHalf, held: mpsc::Sender<Held>) -> Result<()> {
    // Bytes held here are on their way for half of the time that their acknowledgement takes.
    let room = Arc::new(Semaphore::new(usize::try_from(UNDER_WAY / 2)?));
    loop {
        let permit = room.clone().acquire_many_owned(PIECE).await?;
        let mut piece = vec![0; usize::try_from(PIECE)?];
        let count = from.read(&mut piece).await?;
        if count == 0 {
            return Ok(());
        }
        piece.truncate(count);
        let mut permit = permit;
        let kept = permit.split(count).expect("no more than was asked for");
        held.send((Instant::now() + ROUND_TRIP / 2, piece, kept)).await?;
    }
}

async fn give(mut held: mpsc::Receiver<Held>, mut to: OwnedWriteHalf) -> Result<()> {
    while let Some((due, piece, _permit)) = held.recv().await {
        sleep_until(due).await;
        to.write_all(&piece).await?;
    }
    to.shutdown().await?;
    Ok(())
}
