//! Both ends write and owe each other an answer, over paths with little room.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kit::io::Faulty;
use tokio::io::{AsyncWriteExt, DuplexStream, duplex, split};
use tokio::time::sleep;

use super::*;
use crate::testing::Pair;
use crate::turn::{COSTLY, FRAMES, HEADS};
use crate::{Settings, Stream};

/// Its bytes are not frames.
fn no_frames<T>(io: T) -> ReadAhead<T> {
    ReadAhead::new(io, Turns::default(), usize::MAX)
}

/// Writes like h2 when it owes something: everything, with two attempts in each turn, before it
/// reads.
async fn write_all(io: &mut ReadAhead<DuplexStream>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        let written = poll_fn(|cx| match Pin::new(&mut *io).poll_write(cx, bytes) {
            Poll::Pending => Pin::new(&mut *io).poll_write(cx, bytes),
            written @ Poll::Ready(_) => written,
        });
        bytes.advance(written.await.unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn two_ends_that_write_before_they_read_both_get_through() {
    let (near, far) = duplex(1000);
    let (mut near, mut far) = (no_frames(near), no_frames(far));
    let talk = |end: &'static str, said: &'static str| {
        move |mut io: ReadAhead<DuplexStream>| async move {
            write_all(&mut io, said.repeat(100_000).as_bytes()).await;
            assert!(io.early.len() <= ReadAhead::<DuplexStream>::MOST);
            io.shutdown().await.unwrap();
            let mut heard = String::new();
            io.read_to_string(&mut heard).await.unwrap();
            assert!(heard == end.repeat(100_000), "{} bytes", heard.len());
            assert_eq!(io.early.capacity(), 0, "held for nothing");
            assert_eq!(io.read(&mut [0]).await.unwrap(), 0, "an end stays the end");
        }
    };
    // Nothing was read ahead yet: there was no reason to.
    assert_eq!((near.early.capacity(), far.early.capacity()), (0, 0));
    near.write_all(b"x").await.unwrap();
    far.read_exact(&mut [0]).await.unwrap();
    let both = async { tokio::join!(talk("far", "near")(near), talk("near", "far")(far)) };
    tokio::time::timeout(Duration::from_secs(1), both).await.expect("both wait for each other");
}

#[tokio::test]
async fn no_more_is_read_ahead_than_the_limit_and_an_error_comes_after_it() {
    let most = ReadAhead::<DuplexStream>::MOST;
    for (sent, error) in [(most * 2, false), (most / 2, true)] {
        let (near, mut far) = duplex(4 * most);
        far.write_all(&vec![7; sent]).await.unwrap();
        let near = Faulty::new(near).fail_reads_after(sent as u64, io::ErrorKind::ConnectionReset);
        let mut near = no_frames(near);
        // A write that finds no room, twice.
        poll_fn(|cx| {
            for _ in 0..2 {
                let _ = near.after(cx, Poll::<()>::Pending);
            }
            Poll::Ready(())
        })
        .await;
        assert_eq!((near.early.len(), near.end.is_some()), (sent.min(most), error));
        let mut heard = vec![0; sent];
        near.read_exact(&mut heard).await.unwrap();
        assert_eq!(near.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    }
}

/// A slow path: passes on each piece after a delay that differs from piece to piece.
async fn slow(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut seed: u64) {
    let mut buffer = vec![0; 4096];
    while let Ok(bytes @ 1..) = from.read(&mut buffer).await {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sleep(Duration::from_micros((seed >> 33) % 60_000)).await;
        if to.write_all(&buffer[..bytes]).await.is_err() {
            return;
        }
    }
}

/// Sends forever, and reads what arrives.
fn bulk(stream: Stream, moved: &Arc<AtomicU64>) {
    let (mut read, mut write) = split(stream);
    tokio::spawn(async move { while write.write_all(&vec![7; 65_536]).await.is_ok() {} });
    let moved = Arc::clone(moved);
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok(bytes @ 1..) = read.read(&mut buffer).await {
            moved.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    });
}

/// PINGs and growing windows on a link that is full both ways.
#[tokio::test(start_paused = true)]
async fn a_slow_link_that_is_full_both_ways_lives() {
    for seed in 1..=4 {
        let ((near, near_path), (far, far_path)) = (duplex(16 * 1024), duplex(16 * 1024));
        let ((from_near, to_near), (from_far, to_far)) = (split(near_path), split(far_path));
        tokio::spawn(slow(from_near, to_far, seed));
        tokio::spawn(slow(from_far, to_near, seed + 7919));
        let mut pair = Pair::over(&Settings::default(), near, far).await;
        let (up, down) = (Arc::default(), Arc::default());
        for _ in 0..4 {
            let (near, far) = pair.open().await;
            bulk(near, &down);
            bulk(far, &up);
        }
        let mut before = (0, 0);
        for minute in 0..5 {
            sleep(Duration::from_mins(1)).await;
            let now = (up.load(Ordering::Relaxed), down.load(Ordering::Relaxed));
            assert!(now.0 > before.0 && now.1 > before.1, "seed {seed}: nothing moved in minute {minute}: {now:?}");
            before = now;
        }
        assert!(pair.link.is_usable() && !pair.served.is_finished(), "seed {seed}");
        pair.link.close();
    }
}

/// How many bytes of `frames` each turn reads.
async fn read_in_turns(frames: &[u8]) -> Vec<usize> {
    let (near, mut far) = duplex(2 << 20);
    far.write_all(frames).await.unwrap();
    drop(far);
    let turns = Turns::default();
    let mut near = ReadAhead::new(near, turns.clone(), 0);
    let (mut read, mut parts) = (Vec::new(), Vec::new());
    turns.end_one();
    loop {
        let mut piece = BytesMut::with_capacity(32 << 10);
        let before = read.len();
        let is_over = loop {
            match futures_util::poll!(pin!(near.read_buf(&mut piece))) {
                Poll::Ready(bytes) => {
                    if bytes.unwrap() == 0 {
                        break true;
                    }
                    read.extend(piece.split());
                    piece.reserve(32 << 10);
                }
                Poll::Pending => break false,
            }
        };
        parts.push(read.len() - before);
        turns.end_one();
        if is_over {
            assert!(read == frames, "nothing is lost, and nothing else comes");
            return parts;
        }
    }
}

/// h2 keeps 250 bytes for each frame that was not read, and never gives the room back.
#[tokio::test]
async fn a_turn_has_a_thousand_frames_and_no_more() {
    let byte = [0, 0, 1, 0, 0, 0, 0, 0, 1, b'x'];
    let parts = read_in_turns(&byte.repeat(10_000)).await;
    assert!(parts.len() >= 10_000 / FRAMES, "{parts:?}");
    assert!(parts.iter().all(|part| *part <= (FRAMES + 1) * byte.len()), "{parts:?}");
    let large = [&[0, 0x40, 0, 0, 0, 0, 0, 0, 1][..], &[0; 16 << 10]].concat();
    assert_eq!(read_in_turns(&large.repeat(64)).await.len(), 1, "large ones pass at once");
}

/// h2 walks through all streams for each of them.
#[tokio::test]
async fn a_turn_has_few_settings() {
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let parts = read_in_turns(&settings.repeat(500)).await;
    assert!(parts.iter().all(|part| *part <= COSTLY * settings.len()), "{parts:?}");
    let acknowledged = [0, 0, 0, 4, 1, 0, 0, 0, 0];
    assert_eq!(read_in_turns(&acknowledged.repeat(500)).await.len(), 1);
}

/// h2 takes 72 bytes for each byte of a head.
#[tokio::test]
async fn a_turn_has_few_bytes_of_heads() {
    const BLOCK: usize = 1000;
    let head = [&[0, 3, 0xe8, 1, 4, 0, 0, 0, 1][..], &[0x8f; BLOCK]].concat();
    let parts = read_in_turns(&head.repeat(200)).await;
    assert!(parts.iter().all(|part| *part <= HEADS + 2 * head.len()), "{parts:?}");
}
