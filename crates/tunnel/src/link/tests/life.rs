//! How links start, leave and end.

use kit::frames::{END_HEADERS, GOAWAY, HEADERS, INITIAL_WINDOW_SIZE, SETTINGS, encode, setting};
use tokio::io::DuplexStream;

use super::*;
use crate::testing::asked;
use crate::{Serving, serve};

fn is_reset<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}

/// A server that completes the handshake, and then moves and answers only when the test drives it.
async fn frozen(settings: &Settings) -> (Link, h2::server::Connection<DuplexStream, Bytes>) {
    let (near, far) = duplex(256 * 1024);
    let server = async {
        let mut server = h2::server::handshake(far).await.unwrap();
        // Does not wait for the answer to its SETTINGS.
        let _ = futures_util::poll!(std::pin::pin!(server.accept()));
        server
    };
    let (link, server) = tokio::join!(Link::start(near, settings, Hop::Agent), server);
    (link.unwrap(), server)
}

#[tokio::test]
async fn closing_resets_the_streams_at_both_ends() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    pair.link.close();
    is_reset(near.read(&mut [0]).await);
    is_reset(near.write(b"x").await);
    is_reset(far.read(&mut [0]).await);
    is_reset(far.write(b"x").await);
    assert!(matches!(pair.link.ended().await, LinkError::Closed));
    pair.link.leaving().await;
    assert!(!pair.link.is_usable());
    let opened = pair.link.open(&to("db:5432"), None).await;
    assert!(matches!(&opened, Err(OpenError::NotSent(NotSent::Ended(LinkError::Closed)))), "{opened:?}");
    within(SOON, "the other end", pair.served).await.unwrap().unwrap();
}

/// Otherwise it would burden a link that many callers share, for as long as the caller waits.
#[tokio::test]
async fn a_peer_that_answers_a_dial_by_interim_answers_alone_loses_its_link() {
    let (near, far) = duplex(256 * 1024);
    let peer = tokio::spawn(async move {
        let (mut frames, asked) = asked(far).await;
        let hint = encode(HEADERS, END_HEADERS, asked, &[0x08, 3, b'1', b'0', b'3']);
        while frames.send_all(&hint).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
    let opened = within(SOON, "an answer", link.open(&to("db:443"), None)).await;
    assert!(matches!(&opened, Err(OpenError::Lost(why)) if why.to_string().contains("interim")), "{opened:?}");
    within(SOON, "the link's end", link.ended()).await;
    within(SOON, "the peer's end", peer).await.unwrap();
}

/// h2 walks through all streams for each of these frames.
#[tokio::test]
async fn a_peer_that_changes_its_windows_or_says_goodbye_without_an_end_loses_its_link() {
    let windows = [1, 2].map(|bytes| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, bytes))).concat();
    let goodbye = encode(GOAWAY, 0, 0, &[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    for flood in [windows, goodbye] {
        let (near, far) = duplex(256 * 1024);
        let peer = tokio::spawn(async move {
            let (mut frames, _) = asked(far).await;
            while frames.send_all(&flood.repeat(10)).await.is_ok() {
                tokio::task::yield_now().await;
            }
        });
        let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
        let destination = to("db:443");
        let both = async { tokio::join!(link.open(&destination, None), link.ended()) };
        let (opened, ended) = within(SOON, "the link's end", both).await;
        assert!(matches!(ended, LinkError::Flood), "{ended}");
        assert!(opened.is_err(), "{opened:?}");
        within(SOON, "the peer's end", peer).await.unwrap();
    }
}

#[tokio::test]
async fn the_served_end_closes_too() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    pair.serving.close();
    assert!(matches!(pair.served.await.unwrap(), Err(LinkError::Closed)));
    is_reset(near.read(&mut [0]).await);
    is_reset(far.write(b"x").await);
    within(SOON, "the link's end", pair.link.ended()).await;
}

#[tokio::test]
async fn a_link_that_dies_ends_opens_and_streams() {
    let mut pair = Pair::new().await;
    let (mut near, _far) = pair.open().await;
    let destination = to("db:5432");
    let dies = async {
        let incoming = pair.incoming.recv().await;
        pair.served.abort();
        incoming
    };
    let (opened, _incoming) = tokio::join!(pair.link.open(&destination, None), dies);
    assert!(matches!(opened, Err(OpenError::Lost(_))), "{opened:?}");
    is_reset(near.read(&mut [0]).await);
    within(SOON, "the link's end", pair.link.ended()).await;
    assert_eq!(pair.link.streams(), 1, "the stream that is still in hand");
}

#[tokio::test]
async fn a_drain_is_seen_at_once_and_streams_go_on() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    assert!(pair.link.is_usable());
    pair.serving.drain();
    within(SOON, "GOAWAY", pair.link.leaving()).await;
    assert!(!pair.link.is_usable());
    let opened = pair.link.open(&to("db:5432"), None).await;
    assert!(matches!(&opened, Err(OpenError::NotSent(_))), "{opened:?}");
    assert!(!pair.served.is_finished());

    near.write_all(b"still here").await.unwrap();
    near.shutdown().await.unwrap();
    let mut heard = Vec::new();
    far.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"still here");
    let last = vec![7; 5_000_000];
    let writing = async {
        far.write_all(&last).await.unwrap();
        far.shutdown().await.unwrap();
        // The served end may go as soon as it has sent everything: the rest must still arrive.
        drop(far);
    };
    heard.clear();
    let ((), read) = tokio::join!(writing, near.read_to_end(&mut heard));
    assert_eq!((read.unwrap(), heard == last), (last.len(), true));
    drop(near);
    within(SOON, "the end", pair.served).await.unwrap().unwrap();
    assert!(matches!(within(SOON, "the link's end", pair.link.ended()).await, LinkError::Closed));
}

#[tokio::test]
async fn a_link_that_leaves_tells_its_peer() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    within(SOON, "the answer", pair.link.leave()).await;
    within(SOON, "the request", pair.serving.asked_to_leave()).await;
    pair.link.leaving().await;
    assert!(!pair.link.is_usable());
    assert!(matches!(pair.link.open(&to("db:5432"), None).await, Err(OpenError::NotSent(_))));
    near.write_all(b"on").await.unwrap();
    far.read_exact(&mut [0; 2]).await.unwrap();
}

#[tokio::test]
async fn an_abandoned_link_ends_with_its_last_stream() {
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    drop(pair.link);
    near.write_all(b"on").await.unwrap();
    far.read_exact(&mut [0; 2]).await.unwrap();
    near.shutdown().await.unwrap();
    assert_eq!(far.read(&mut [0]).await.unwrap(), 0);
    far.shutdown().await.unwrap();
    assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
    assert!(!pair.served.is_finished());
    drop((near, far));
    within(SOON, "the end", pair.served).await.unwrap().unwrap();
}

#[tokio::test]
async fn what_is_queued_when_everybody_lets_go_still_arrives() {
    let (near, far) = duplex(1000);
    let mut pair = Pair::over(&Settings::default(), near, far).await;
    let (mut near, mut far) = pair.open().await;
    far.shutdown().await.unwrap();
    assert_eq!(near.read(&mut [0]).await.unwrap(), 0);
    // Far more than the pipe takes: h2 has the rest now.
    near.write_all(&vec![7; 200_000]).await.unwrap();
    near.shutdown().await.unwrap();
    drop(near);
    let finished = tokio::spawn(pair.link.finished());
    let mut heard = Vec::new();
    far.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard.len(), 200_000);
    within(SOON, "the link's end", finished).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_peer_without_settings_is_not_waited_for_long() {
    let (near, _far) = duplex(1024);
    let started = Instant::now();
    let error = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap_err();
    assert!(matches!(error, LinkError::HandshakeTimeout(_)), "{error}");
    assert_eq!(started.elapsed(), Settings::default().handshake_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_frozen_peer_is_dead_after_silence_and_an_unanswered_ping() {
    let settings = Settings::default();
    let (link, _server) = frozen(&settings).await;
    let started = Instant::now();
    let LinkError::Silent(silence) = link.ended().await else { panic!("another end") };
    assert_eq!(silence, settings.keepalive + settings.keepalive_timeout);
    assert!(started.elapsed() <= settings.keepalive + settings.keepalive_timeout, "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_frozen_client_is_dead_to_the_server_too() {
    let (near, far) = duplex(256 * 1024);
    let settings = Settings::default();
    let served = tokio::spawn(async move { serve(far, &settings, Serving::default(), |_| async {}).await });
    let (_sender, mut connection) = h2::client::handshake(near).await.unwrap();
    let _ = futures_util::poll!(&mut connection);
    let started = Instant::now();
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(error, LinkError::Silent(_)), "{error}");
    assert!(started.elapsed() <= Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn an_open_without_an_answer_makes_a_link_suspect_until_it_is_heard() {
    let (link, mut server) = frozen(&Settings::default()).await;
    assert!(link.is_usable());
    let destination = to("db:5432");
    timeout(Duration::from_millis(100), link.open(&destination, None)).await.unwrap_err();
    assert!(link.is_usable(), "there was no time for an answer");
    timeout(Duration::from_secs(3), link.open(&destination, None)).await.unwrap_err();
    assert!(!link.is_usable());
    // Thawed: it answers the PING that the suspicion caused, which removes the suspicion.
    tokio::spawn(async move { while server.accept().await.is_some() {} });
    within(SOON, "an answer", async {
        while !link.is_usable() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_suspicion_is_settled_by_a_ping() {
    let pair = Pair::new().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    // The peer is alive, and only slow to answer this open.
    let destination = to("db:5432");
    timeout(Duration::from_secs(3), pair.link.open(&destination, None)).await.unwrap_err();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(pair.link.is_usable());
    assert!(pair.link.silence() < Duration::from_secs(1), "{:?}", pair.link.silence());
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_ping_makes_a_link_suspect_before_it_is_dead() {
    let settings = Settings::default();
    let (link, _server) = frozen(&settings).await;
    tokio::time::sleep(settings.keepalive + settings.keepalive_timeout / 2).await;
    assert!(!link.is_usable());
    tokio::select! {
        end = link.ended() => panic!("{end}"),
        () = tokio::task::yield_now() => {}
    }
}

#[tokio::test(start_paused = true)]
async fn idle_links_live_on_and_know_their_round_trip() {
    let pair = Pair::new().await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(pair.link.is_usable() && !pair.served.is_finished());
    assert!(pair.link.rtt().is_some() && pair.serving.rtt().is_some());
    assert!(pair.link.silence() <= Settings::default().keepalive);
}

/// Its peer's own PINGs may wait behind the peer's data: the peer would take a silent receiver for
/// dead.
#[tokio::test(start_paused = true)]
async fn the_one_who_only_receives_speaks_up() {
    let (near, far) = duplex(256 * 1024);
    let served = tokio::spawn(async move {
        let read = |incoming: crate::Incoming| async move {
            let mut stream = incoming.accept().unwrap();
            while stream.read(&mut [0; 1]).await.unwrap() > 0 {}
        };
        serve(far, &Settings::default(), Serving::default(), read).await
    });
    let never = Settings { keepalive: Duration::from_hours(10), ..Settings::default() };
    let link = Link::start(near, &never, Hop::Agent).await.unwrap();
    let mut stream = link.open(&to("db:5432"), None).await.unwrap();
    for _ in 0..120 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stream.write_all(b"x").await.unwrap();
        assert!(link.silence() <= Settings::default().keepalive + Duration::from_secs(1), "{:?}", link.silence());
    }
    assert!(!served.is_finished());
}
