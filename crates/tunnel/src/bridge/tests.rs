//! A stream bridged to a socket: `near` is the stream's far end, `peer` the socket's.

mod tls;

use std::sync::atomic::Ordering;
use std::time::Duration;

use kit::wait::{eventually, within};
use net::prefixed::Prefixed;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, duplex, split};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

use super::*;
use crate::Settings;
use crate::testing::Pair;

const SOON: Duration = Duration::from_secs(10);

struct Bridged<P> {
    near: Stream,
    peer: P,
    gauge: Arc<Gauge>,
    end: JoinHandle<io::Result<()>>,
}

async fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(listener.local_addr().unwrap()), listener.accept());
    (connected.unwrap(), accepted.unwrap().0)
}

async fn join<S: Socket, P>(pair: &mut Pair, (socket, peer): (S, P)) -> Bridged<P> {
    let (near, far) = pair.open().await;
    let gauge = Arc::new(Gauge::default());
    let end = tokio::spawn(bridge(far, socket, Arc::clone(&gauge), true));
    Bridged { near, peer, gauge, end }
}

async fn bridged(pair: &mut Pair) -> Bridged<TcpStream> {
    join(pair, sockets().await).await
}

fn is_reset<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn bytes_and_ends_pass_each_way_by_themselves() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, mut peer, gauge, end } = bridged(&mut pair).await;
    let sent = vec![7; 3_000_000];
    let sending = async {
        near.write_all(&sent).await.unwrap();
        near.shutdown().await.unwrap();
    };
    let mut heard = Vec::new();
    let ((), read) = tokio::join!(sending, peer.read_to_end(&mut heard));
    assert_eq!((read.unwrap(), heard == sent), (sent.len(), true));
    let sending = async {
        peer.write_all(&sent).await.unwrap();
        peer.shutdown().await.unwrap();
    };
    heard.clear();
    let ((), read) = tokio::join!(sending, near.read_to_end(&mut heard));
    assert_eq!((read.unwrap(), heard == sent), (sent.len(), true));
    end.await.unwrap().unwrap();
    assert_eq!(gauge.forth.load(Ordering::Relaxed), 3_000_000);
    assert_eq!(gauge.back.load(Ordering::Relaxed), 3_000_000);
    assert_eq!(gauge.held(), 0);
}

#[tokio::test]
async fn a_socket_that_ends_first_still_hears_the_answer() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, mut peer, end, .. } = bridged(&mut pair).await;
    peer.write_all(b"question").await.unwrap();
    peer.shutdown().await.unwrap();
    let mut heard = Vec::new();
    near.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"question");
    near.write_all(b"answer").await.unwrap();
    near.shutdown().await.unwrap();
    heard.clear();
    peer.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"answer");
    end.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_reset_is_a_reset_both_ways() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, peer, end, .. } = bridged(&mut pair).await;
    peer.abort();
    is_reset(near.read(&mut [0]).await);
    is_reset(near.write_all(b"x").await);
    end.await.unwrap().unwrap_err();

    let Bridged { near, mut peer, end, .. } = bridged(&mut pair).await;
    drop(near);
    is_reset(peer.read(&mut [0]).await);
    is_reset(end.await.unwrap());

    // A bridge that is given up, and a lost link.
    let Bridged { near: _near, mut peer, end, .. } = bridged(&mut pair).await;
    end.abort();
    is_reset(peer.read(&mut [0]).await);
    let Bridged { near: _near, mut peer, end, .. } = bridged(&mut pair).await;
    pair.link.close();
    is_reset(peer.read(&mut [0]).await);
    is_reset(end.await.unwrap());
}

#[tokio::test]
async fn a_reset_after_the_streams_end_is_seen() {
    let mut pair = Pair::new().await;
    let Bridged { mut near, mut peer, end, .. } = bridged(&mut pair).await;
    near.shutdown().await.unwrap();
    assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
    drop(near);
    is_reset(within(SOON, "the end", end).await.unwrap());
    peer.write_all(b"x").await.unwrap_err();
}

#[tokio::test]
async fn a_reset_of_a_socket_that_is_not_read_is_seen() {
    let settings = Settings { stream_window: 1000, stream_window_max: 1000, ..Settings::default() };
    let mut pair = Pair::with(&settings).await;
    let Bridged { mut near, mut peer, gauge, end } = bridged(&mut pair).await;
    peer.write_all(&vec![0; 100_000]).await.unwrap();
    eventually(SOON, || gauge.held() > 0).await;
    peer.abort();
    is_reset(within(SOON, "the end", end).await.unwrap());
    let mut rest = Vec::new();
    is_reset(near.read_to_end(&mut rest).await);
}

/// Writes more than a stream and a socket take while nothing is read.
async fn stuff<W: AsyncWrite + Unpin>(peer: &mut W) {
    while tokio::time::timeout(Duration::from_secs(3), peer.write(&[1; 10_000])).await.is_ok() {}
}

#[tokio::test(start_paused = true)]
async fn a_unix_socket_whose_peer_is_gone_is_given_up_when_nothing_moves() {
    let mut pair = Pair::new().await;
    let mut gone = join(&mut pair, UnixStream::pair().unwrap()).await;
    let mut half = join(&mut pair, UnixStream::pair().unwrap()).await;
    stuff(&mut gone.peer).await;
    stuff(&mut half.peer).await;
    drop(gone.peer);
    half.peer.shutdown().await.unwrap();
    let waited = tokio::time::Instant::now();
    is_reset(gone.end.await.unwrap());
    assert!(waited.elapsed() > Duration::from_secs(110), "{:?}", waited.elapsed());
    is_reset(gone.near.read_to_end(&mut Vec::new()).await);
    // A peer that has ended only its writing may still read an answer.
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(!half.end.is_finished());
}

#[tokio::test(start_paused = true)]
async fn what_a_unix_socket_was_given_before_its_peer_went_arrives_however_slowly() {
    let window = 64 * 1024;
    let settings = Settings { stream_window: window, stream_window_max: window, ..Settings::default() };
    let mut pair = Pair::with(&settings).await;
    let mut bridged = join(&mut pair, UnixStream::pair().unwrap()).await;
    stuff(&mut bridged.peer).await;
    drop(bridged.peer);
    let (mut read, mut buffer) = (0, vec![0; 500]);
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        match bridged.near.read(&mut buffer).await.unwrap() {
            0 => break,
            more => read += more,
        }
    }
    assert!(read >= 150_000, "{read} bytes");
    bridged.near.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_socket_that_is_not_read_by_its_peer_holds_a_window() {
    let settings = Settings { stream_window: 50_000, stream_window_max: 50_000, ..Settings::default() };
    let mut pair = Pair::with(&settings).await;
    let Bridged { mut near, mut peer, gauge, end } = bridged(&mut pair).await;
    let writing = tokio::spawn(async move {
        // More than any socket buffer.
        near.write_all(&vec![7; 40_000_000]).await.unwrap();
        near.shutdown().await.unwrap();
        near
    });
    eventually(SOON, || gauge.held() >= 40_000).await;
    assert!(gauge.held() <= 50_000 && !writing.is_finished());
    let mut heard = Vec::new();
    peer.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard.len(), 40_000_000);
    peer.shutdown().await.unwrap();
    let mut near = writing.await.unwrap();
    assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
    end.await.unwrap().unwrap();
    assert_eq!(gauge.held(), 0);
}

#[tokio::test]
async fn unix_sockets_and_bytes_read_ahead_are_bridged_too() {
    let mut pair = Pair::new().await;
    let (socket, peer) = UnixStream::pair().unwrap();
    let socket = Prefixed::new(socket, bytes::Bytes::from_static(b"early "));
    let (stream, mut near) = pair.open().await;
    let gauge = Arc::new(Gauge::default());
    // Like a front: the socket is the side that asks.
    let end = tokio::spawn(bridge(stream, socket, Arc::clone(&gauge), false));
    let mut peer = peer;
    peer.write_all(b"late").await.unwrap();
    peer.shutdown().await.unwrap();
    let mut heard = Vec::new();
    near.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"early late");
    near.write_all(b"answer").await.unwrap();
    near.shutdown().await.unwrap();
    heard.clear();
    peer.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"answer");
    end.await.unwrap().unwrap();
    assert_eq!((gauge.forth.load(Ordering::Relaxed), gauge.back.load(Ordering::Relaxed)), (10, 6));
}

#[tokio::test]
async fn what_a_bridge_holds_counts_in_the_budget() {
    let mut pair = Pair::new().await;
    let (mut near, far) = pair.open().await;
    let (socket, _peer) = sockets().await;
    let budget = Budget::new(100_000);
    let counted = budget.clone();
    let end = tokio::spawn(async move { bridge_within(far, socket, Arc::default(), true, &counted).await });
    let _ = near.write_all(&vec![7; 40_000_000]).await;
    let error = within(SOON, "the end", end).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::QuotaExceeded);
    assert_eq!((budget.sheds(), budget.held()), (1, 0));
}

/// Uploads over a link that takes nothing more.
#[tokio::test]
async fn what_waits_in_http2_counts_in_the_budget() {
    let ((near, middle), (far_middle, far)) = (duplex(4096), duplex(4096));
    let ((mut read, mut write), (mut far_read, mut far_write)) = (split(middle), split(far_middle));
    tokio::spawn(async move { copy(&mut read, &mut far_write).await });
    let back = tokio::spawn(async move { copy(&mut far_read, &mut write).await });
    let mut pair = Pair::over(&Settings::default(), near, far).await;
    let budget = Budget::new(1 << 20);
    let mut streams = Vec::new();
    for _ in 0..8 {
        streams.push(pair.open().await);
    }
    back.abort();
    eventually(SOON, || back.is_finished()).await;
    let mut nears = Vec::new();
    for (near, far) in streams {
        let (socket, mut peer) = sockets().await;
        tokio::spawn(bridge_within(far, socket, Arc::default(), true, &budget));
        tokio::spawn(async move { peer.write_all(&vec![7; 40_000_000]).await });
        nears.push(near);
        if nears.len() == 1 {
            eventually(SOON, || budget.held() >= 256 * 1024).await;
            assert_eq!(budget.sheds(), 0);
        }
    }
    eventually(SOON, || budget.sheds() > 0).await;
    eventually(SOON, || budget.held() <= 1 << 20).await;
    pair.link.close();
    eventually(SOON, || budget.held() == 0).await;
}

/// Fits into a socket's buffer.
const ANSWER: usize = 40_000;

async fn assert_whole(near: &mut Stream, what: &str) {
    let mut heard = Vec::new();
    let end = within(SOON, what, near.read_to_end(&mut heard)).await;
    assert_eq!(heard.len(), ANSWER, "{what}");
    is_reset(end);
}

#[tokio::test]
async fn what_came_before_a_reset_arrives_before_it() {
    for window in [1000, 1 << 20] {
        let settings = Settings { stream_window: window, stream_window_max: window, ..Settings::default() };
        let mut pair = Pair::with(&settings).await;
        for _ in 0..20 {
            let Bridged { mut near, mut peer, gauge, end } = bridged(&mut pair).await;
            peer.write_all(&vec![7; ANSWER]).await.unwrap();
            eventually(SOON, || gauge.held() + gauge.back.load(Ordering::Relaxed) > 0).await;
            peer.abort();
            assert_whole(&mut near, &format!("an answer through a window of {window}")).await;
            is_reset(within(SOON, "the end", end).await.unwrap());
        }
    }
}

/// A server that answers before it has read everything.
#[tokio::test]
async fn an_answer_arrives_though_nothing_can_be_written_any_more() {
    let settings = Settings { stream_window: 1000, stream_window_max: 1000, ..Settings::default() };
    let mut pair = Pair::with(&settings).await;
    for _ in 0..20 {
        let Bridged { mut near, mut peer, gauge, end } = bridged(&mut pair).await;
        peer.write_all(&vec![7; ANSWER]).await.unwrap();
        eventually(SOON, || gauge.back.load(Ordering::Relaxed) > 0).await;
        peer.abort();
        near.write_all(&[1; 500]).await.unwrap();
        assert_whole(&mut near, "the answer").await;
        is_reset(within(SOON, "the end", end).await.unwrap());
    }
}

#[test]
fn an_idle_bridge_is_small() {
    let size = size_of::<Bridge<TcpStream>>();
    assert!(size <= 512, "{size} bytes");
}
