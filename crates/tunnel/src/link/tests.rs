//! A link and its server over a pipe in memory.

mod life;

use std::future::poll_fn;
use std::io;

use kit::io::Faulty;
use kit::wait::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;
use crate::Reason;
use crate::testing::{Pair, to};

const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_stream_carries_bytes_both_ways_and_ends_each_way() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    near.write_all(b"ping").await.unwrap();
    near.shutdown().await.unwrap();
    let mut heard = Vec::new();
    far.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"ping");
    far.write_all(b"pong").await.unwrap();
    far.shutdown().await.unwrap();
    heard.clear();
    near.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"pong");
    assert_eq!((pair.link.streams(), pair.serving.streams()), (1, 1));
    drop((near, far));
    assert_eq!((pair.link.streams(), pair.serving.streams()), (0, 0));
}

#[tokio::test]
async fn a_request_says_where_to_and_an_answer_why_not() {
    let mut pair = Pair::new().await;
    let cluster = ClusterName::parse("north").unwrap();
    let answer = async {
        let incoming = pair.incoming.recv().await.unwrap();
        assert_eq!(incoming.destination, to("[fd00::1]:443"));
        assert_eq!(incoming.cluster.as_ref(), Some(&cluster));
        incoming.refuse(&Refusal::new(Hop::Agent, Reason::Forbidden, "no: it is 'ours' – ask"));
    };
    let destination = to("[fd00::1]:443");
    let (opened, ()) = tokio::join!(pair.link.open(&destination, Some(&cluster)), answer);
    let Err(OpenError::Refused(refusal)) = opened else { panic!("{opened:?}") };
    assert_eq!(refusal, Refusal::new(Hop::Agent, Reason::Forbidden, "no: it is 'ours' – ask"));
    assert_eq!((pair.link.streams(), pair.serving.streams()), (0, 0));
}

#[tokio::test]
async fn giving_up_a_dial_reaches_the_one_who_dials() {
    let mut pair = Pair::new().await;
    let destination = to("db:5432");
    let (mut incoming, opening) = {
        let mut opening = Box::pin(pair.link.open(&destination, None));
        let incoming = tokio::select! {
            incoming = pair.incoming.recv() => incoming.unwrap(),
            _ = &mut opening => panic!("nobody has answered"),
        };
        (incoming, opening)
    };
    tokio::select! {
        () = incoming.cancelled() => panic!("nobody has given up"),
        () = tokio::task::yield_now() => {}
    }
    drop(opening);
    within(SOON, "the cancellation", incoming.cancelled()).await;
    drop(incoming);
    assert_eq!((pair.link.streams(), pair.serving.streams()), (0, 0));
}

#[tokio::test]
async fn a_request_that_nobody_answers_is_no_stream() {
    let mut pair = Pair::new().await;
    let destination = to("db:5432");
    let drops = async { drop(pair.incoming.recv().await) };
    let (opened, ()) = tokio::join!(pair.link.open(&destination, None), drops);
    assert!(matches!(&opened, Err(OpenError::Lost(why)) if why.to_string().contains("internal error")), "{opened:?}");
    // Only this stream was affected.
    pair.open().await;
}

#[tokio::test]
async fn a_full_link_says_so_and_has_room_again() {
    let mut pair = Pair::with(&Settings { max_streams: 2, ..Settings::default() }).await;
    let (first, _second) = (pair.open().await, pair.open().await);
    assert!(!pair.link.is_usable());
    let third = pair.link.open(&to("db:5432"), None).await;
    assert!(matches!(&third, Err(OpenError::NotSent(NotSent::Full(2)))), "{third:?}");
    drop(first);
    assert!(pair.link.is_usable());
    pair.open().await;
}

#[tokio::test]
async fn a_reset_ends_both_directions_of_the_other_end() {
    let mut pair = Pair::new().await;
    let (near, mut far) = pair.open().await;
    drop(near);
    assert_eq!(far.read(&mut [0]).await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(far.write(b"x").await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(far.shutdown().await.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

    // A writer that waits for room, and reads nothing.
    let (near, mut far) = pair.open().await;
    let writing = tokio::spawn(async move { far.write_all(&vec![0; 64 << 20]).await });
    drop(near);
    let end = within(SOON, "the writer", writing).await.unwrap();
    assert_eq!(end.unwrap_err().kind(), io::ErrorKind::ConnectionReset);

    // A task that neither reads nor writes.
    let (near, mut far) = pair.open().await;
    drop(near);
    let error = within(SOON, "the waiter", poll_fn(|cx| far.poll_reset(cx))).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn a_stream_with_an_unread_end_is_still_reset_by_dropping_it() {
    let mut pair = Pair::new().await;
    // Each end has sent its END_STREAM, and one has unread bytes: dropping that loses them, which
    // the other must learn.
    let (mut near, mut far) = pair.open().await;
    far.write_all(b"unread").await.unwrap();
    near.shutdown().await.unwrap();
    assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
    drop(near);
    let error = within(SOON, "the reset", poll_fn(|cx| far.poll_reset(cx))).await;
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn either_end_that_goes_after_its_own_end_only_is_a_reset() {
    let mut pair = Pair::new().await;
    let (near, far) = pair.open().await;
    let (other_near, other_far) = pair.open().await;
    for (mut goes, mut stays) in [(near, far), (other_far, other_near)] {
        goes.shutdown().await.unwrap();
        assert_eq!(stays.read(&mut [0]).await.unwrap(), 0);
        drop(goes);
        let error = within(SOON, "the reset", poll_fn(|cx| stays.poll_reset(cx))).await;
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn what_was_written_before_the_end_arrives_whole() {
    let mut pair = Pair::new().await;
    for size in [1, 1000, 16 * 1024, 64 * 1024 + 1, 1 << 20, 5_000_000] {
        let (mut near, mut far) = pair.open().await;
        let sent: Vec<u8> = (0..size).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let writing = async {
            near.write_all(&sent).await.unwrap();
            near.shutdown().await.unwrap();
            // Not dropped: that would be a reset, as the other direction is open.
            near
        };
        let mut heard = Vec::new();
        let (mut near, read) = tokio::join!(writing, far.read_to_end(&mut heard));
        assert_eq!((read.unwrap(), heard == sent), (size, true));
        far.shutdown().await.unwrap();
        assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn adversarial_io_and_a_tiny_window_lose_nothing() {
    let (near, far) = duplex(1000);
    let (near, far) = (Faulty::new(near).chunks(7).spurious_pending(), Faulty::new(far).chunks(5).spurious_pending());
    let settings = Settings { stream_window: 100, stream_window_max: 100, ..Settings::default() };
    let mut pair = Pair::over(&settings, near, far).await;
    let (mut near, mut far) = pair.open().await;
    let sent: Vec<u8> = (0..10_000).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let writing = async {
        for piece in sent.chunks(333) {
            near.write_all(piece).await.unwrap();
        }
        near.shutdown().await.unwrap();
    };
    let reading = async {
        let mut heard = Vec::new();
        while let Ok(byte) = far.read_u8().await {
            heard.push(byte);
        }
        heard
    };
    let ((), heard) = within(SOON, "10,000 bytes", async { tokio::join!(writing, reading) }).await;
    assert!(heard == sent);
}

#[tokio::test]
async fn stalled_streams_each_way_do_not_disturb_another() {
    let mut pair = Pair::new().await;
    let mut stalled = Vec::new();
    for at in 0..200 {
        let (near, far) = pair.open().await;
        let (mut writer, reader) = if at % 2 == 0 { (near, far) } else { (far, near) };
        // Writes as much as it can; nothing is read.
        let full = tokio::spawn(async move { writer.write_all(&vec![0; 8 << 20]).await });
        stalled.push((full, reader));
    }
    let (mut near, mut far) = pair.open().await;
    let echo = tokio::spawn(async move {
        let mut buffer = [0; 64];
        while far.read_exact(&mut buffer).await.is_ok() {
            far.write_all(&buffer).await.unwrap();
        }
    });
    for _ in 0..100 {
        let round_trip = async {
            near.write_all(&[1; 64]).await.unwrap();
            near.read_exact(&mut [0; 64]).await.unwrap();
        };
        within(SOON, "an echo", round_trip).await;
    }
    assert!(stalled.iter().all(|(full, _)| !full.is_finished()), "more than a window was taken");
    drop(near);
    echo.await.unwrap();
}

/// h2 would take them for an attack and end all streams.
#[tokio::test]
async fn short_frames_that_nobody_reads_end_nothing() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    for _ in 0..2000 {
        near.write_all(b"x").await.unwrap();
        tokio::task::yield_now().await;
    }
    let (mut other_near, mut other_far) = pair.open().await;
    other_near.write_all(b"ping").await.unwrap();
    other_far.read_exact(&mut [0; 4]).await.unwrap();
    far.read_exact(&mut [0; 2000]).await.unwrap();
}

/// A peer with a small connection window: other streams would wait for room that one stream has
/// requested and does not use.
#[tokio::test]
async fn room_that_is_not_used_is_given_back() {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(async move {
        let mut server = h2::server::handshake(far).await.unwrap();
        let mut streams = Vec::new();
        while let Some(Ok((request, mut respond))) = server.accept().await {
            streams.push((request, respond.send_response(http::Response::new(()), false).unwrap()));
        }
    });
    let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
    let destination = to("db:5432");
    let (mut first, mut second) =
        (link.open(&destination, None).await.unwrap(), link.open(&destination, None).await.unwrap());
    assert_eq!(poll_fn(|cx| first.poll_room(cx, 65_535)).await.unwrap(), 65_535);
    assert!(futures_util::poll!(poll_fn(|cx| second.poll_room(cx, 1))).is_pending());
    first.settle();
    assert_eq!(within(SOON, "room", poll_fn(|cx| second.poll_room(cx, 1))).await.unwrap(), 1);
}

#[tokio::test]
async fn a_peer_that_reads_no_more_after_its_end_is_no_error() {
    let (near, far) = duplex(64 * 1024);
    let peer = async {
        let mut server = h2::server::handshake(far).await.unwrap();
        let (request, mut respond) = server.accept().await.unwrap().unwrap();
        let mut send = respond.send_response(http::Response::new(()), false).unwrap();
        send.send_data(Bytes::from_static(b"last words"), true).unwrap();
        // h2 sends RST_STREAM(NO_ERROR) once everything was sent.
        drop((request, send, respond));
        while server.accept().await.is_some() {}
    };
    let driven = tokio::spawn(peer);
    let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
    let mut stream = link.open(&to("db:5432"), None).await.unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"last words");
    assert_eq!(poll_fn(|cx| stream.poll_reset(cx)).await.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!(stream.write(b"x").await.unwrap_err().kind(), io::ErrorKind::BrokenPipe);
    drop((stream, link));
    driven.await.unwrap();
}
