//! Byte streams over pipes in memory: the pump behind an upgrade, streams of a link, and two links
//! joined.

use std::sync::Arc;

use net::pump::{Moved, pump};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tunnel::{Budget, Destination, Hop, Incoming, Link, Serving, Settings, Stream, serve, splice};

use super::Operation;

/// Sent and echoed by one operation on an open stream.
const PIECE: usize = 16 << 10;
/// Sent and echoed on a stream that is opened for it.
const WORD: usize = 64;
/// Buffer of a pipe.
const ROOM: usize = 256 << 10;
/// Bytes that the relay may hold.
const HELD: u64 = 1 << 30;

pub fn pumped() -> Operation {
    let start = async || {
        let (near, mut a) = duplex(ROOM);
        let (mut b, far) = duplex(ROOM);
        tokio::spawn(async move { pump(&mut a, &mut b, &mut Moved::default()).await });
        tokio::spawn(echo(far));
        near
    };
    let once = async |near: &mut DuplexStream| there_and_back(near, PIECE).await;
    Operation::waiting("pump", "16 KiB there and back through a pump", start, once)
}

pub fn connect() -> Operation {
    let once = async |link: &mut Link| there_and_back(&mut open(link).await, WORD).await;
    Operation::waiting("connect", "CONNECT stream opened, 64 bytes echoed, closed", async || echoing_link().await, once)
}

pub fn linked() -> Operation {
    let start = async || open(&echoing_link().await).await;
    let once = async |stream: &mut Stream| there_and_back(stream, PIECE).await;
    Operation::waiting("link", "16 KiB there and back on a stream of a link", start, once)
}

pub fn spliced() -> Operation {
    let start = async || {
        let (onward, budget) = (echoing_link().await, Budget::new(HELD));
        let link = link(move |incoming: Incoming| {
            let (onward, budget) = (onward.clone(), budget.clone());
            async move {
                let onward = open(&onward).await;
                let joined = splice::splice(incoming.accept().expect("open"), onward, Arc::default(), &budget);
                drop(joined.await); // it ends with the bench
            }
        });
        open(&link.await).await
    };
    let once = async |stream: &mut Stream| there_and_back(stream, PIECE).await;
    Operation::waiting("splice", "16 KiB there and back through two links, spliced", start, once)
}

async fn echoing_link() -> Link {
    link(|incoming: Incoming| async move { echo(incoming.accept().expect("open")).await }).await
}

/// A link whose other end answers by `answer`.
async fn link<F>(answer: impl Fn(Incoming) -> F + Send + 'static) -> Link
where
    F: Future<Output = ()> + Send + 'static,
{
    let (near, far) = duplex(ROOM);
    tokio::spawn(async move { serve(far, &Settings::default(), Serving::default(), answer).await });
    Link::start(near, &Settings::default(), Hop::Agent).await.expect("a link")
}

async fn open(link: &Link) -> Stream {
    link.open(&Destination::new("destination", 1).expect("a name"), None).await.expect("opened")
}

async fn echo(io: impl AsyncRead + AsyncWrite) {
    let (mut reader, mut writer) = tokio::io::split(io);
    // An error is the other end leaving.
    if tokio::io::copy(&mut reader, &mut writer).await.is_ok() {
        drop(writer.shutdown().await);
    }
}

async fn there_and_back(io: &mut (impl AsyncRead + AsyncWrite + Unpin), size: usize) {
    let mut bytes = vec![7; size];
    io.write_all(&bytes).await.expect("written");
    io.flush().await.expect("flushed");
    io.read_exact(&mut bytes).await.expect("echoed");
}
