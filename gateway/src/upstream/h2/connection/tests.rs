use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Request, Response};
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncWriteExt as _, DuplexStream, ReadBuf, duplex};
use tokio::task::coop::poll_proceed;
use tokio::time::Instant;

use super::*;

/// A member that accepts `streams` at a time, and answers every request with a head and keeps the
/// stream open.
async fn member(io: DuplexStream, streams: u32) {
    let mut connection =
        h2::server::Builder::new().max_concurrent_streams(streams).handshake::<_, Bytes>(io).await.unwrap();
    let mut open = Vec::new();
    while let Some(Ok((_, mut respond))) = connection.accept().await {
        open.push(respond.send_response(Response::new(()), false).unwrap());
    }
}

async fn connected(streams: u32) -> (Arc<Connection>, Gauge) {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn(member(theirs, streams));
    let open = Gauge::default();
    (start(ours, &open, None).await, open)
}

async fn start(ours: DuplexStream, open: &Gauge, leaving: Option<CancellationToken>) -> Arc<Connection> {
    let target = Target::sample();
    let held = target.held(0);
    Connection::start(ours, &target, held, InFlight::new(open), Arc::default(), leaving).await.unwrap()
}

async fn until_closed(open: &Gauge) -> Duration {
    let started = Instant::now();
    while open.get() > 0 {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
        assert!(started.elapsed() < Duration::from_hours(1), "never closed");
    }
    started.elapsed()
}

/// One or two polls of [`until_closed`].
const AT_ONCE: Duration = Duration::from_secs(2);

/// Advances the clock by `time` in steps, so that all that is due happens.
async fn pass(time: Duration) {
    for _ in 0..time.as_secs() {
        tokio::time::advance(Duration::from_secs(1)).await;
        tokio::task::yield_now().await;
    }
}

fn request() -> Request<()> {
    Request::get("https://member:6443/api").body(()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_stream_limit_of_the_member_is_known_before_the_first_request() {
    let (connection, _) = connected(3).await;
    let leases: Vec<_> = std::iter::from_fn(|| connection.lease()).collect();
    assert_eq!(leases.len(), 3);
    drop(leases);
    assert!(connection.lease().is_some(), "leases are given back");
}

#[tokio::test(start_paused = true)]
async fn an_unused_connection_is_closed_in_the_end() {
    let (_connection, open) = connected(100).await;
    let after = until_closed(&open).await;
    let expected = Settings::PING_AFTER * (Settings::IDLE_LOOKS + 1);
    assert!(after <= expected && after >= expected / 2, "{after:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_with_an_idle_stream_lives_on() {
    let (connection, open) = connected(100).await;
    let mut lease = connection.lease().unwrap();
    lease.ready().await.unwrap();
    let (response, _stream) = lease.sender().send_request(request(), true).unwrap();
    let _body = response.await.unwrap().into_body();
    pass(Duration::from_hours(1)).await;
    assert_eq!(open.get(), 1, "a watch without events is no reason to close");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_falls_silent_ends_its_streams() {
    let (ours, theirs) = duplex(64 * 1024);
    let (freeze, frozen) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(async move {
        let mut member = std::pin::pin!(member(theirs, 100));
        tokio::select! {
            () = &mut member => {}
            // The connection stays open, but nothing reads it.
            _ = frozen => std::future::pending().await,
        }
    });
    let open = Gauge::default();
    let connection = start(ours, &open, None).await;
    let mut lease = connection.lease().unwrap();
    lease.ready().await.unwrap();
    let (response, _stream) = lease.sender().send_request(request(), true).unwrap();
    let mut body = response.await.unwrap().into_body();
    drop(freeze);
    let after = until_closed(&open).await;
    assert!(after >= Settings::PONG_WITHIN, "{after:?}");
    assert!(after <= Settings::PING_AFTER * 2 + Settings::PONG_WITHIN + Duration::from_secs(5), "{after:?}");
    assert!(body.data().await.is_none_or(|data| data.is_err()), "the stream ended with an error");
    assert!(connection.lease().is_none(), "and nobody gets another");
    server.abort();
}

/// The tunnel-server, or the agent, in front of the member shuts down.
#[tokio::test(start_paused = true)]
async fn a_connection_whose_way_is_about_to_end_takes_no_requests_and_ends_with_its_last() {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn(member(theirs, 100));
    let (open, leaving) = (Gauge::default(), CancellationToken::new());
    let connection = start(ours, &open, Some(leaving.clone())).await;
    let leases = (connection.lease().unwrap(), connection.lease().unwrap());
    leaving.cancel();
    kit::wait::eventually(kit::wait::WAIT, || connection.is_closing()).await;
    assert!(connection.lease().is_none());
    drop(leases.0);
    pass(Duration::from_mins(1)).await;
    assert_eq!(open.get(), 1, "the other request goes on");
    drop(leases.1);
    let after = until_closed(&open).await;
    assert!(after <= AT_ONCE, "not when it is found idle: {after:?}");
}

#[tokio::test(start_paused = true)]
async fn an_unused_connection_whose_way_is_about_to_end_is_closed_at_once() {
    let (ours, theirs) = duplex(64 * 1024);
    tokio::spawn(member(theirs, 100));
    let (open, leaving) = (Gauge::default(), CancellationToken::new());
    let _connection = start(ours, &open, Some(leaving.clone())).await;
    leaving.cancel();
    let after = until_closed(&open).await;
    assert!(after <= AT_ONCE, "{after:?}");
}

/// Nothing may come between the frames of a head, not even the answer to a PING.
#[tokio::test(start_paused = true)]
async fn a_member_whose_head_takes_minutes_is_alive() {
    const HEAD: Duration = Duration::from_mins(5);
    let (ours, theirs) = duplex(64 * 1024);
    let (mut requests, mut answers) = tokio::io::split(theirs);
    tokio::spawn(async move { tokio::io::copy(&mut requests, &mut tokio::io::sink()).await });
    tokio::spawn(async move {
        let head = [0, 64, 0, 1, 0, 0, 0, 0, 1];
        answers.write_all(&[&SETTINGS[..], &head].concat()).await.unwrap();
        for _ in 0..HEAD.as_secs() / 10 {
            tokio::time::sleep(Duration::from_secs(10)).await;
            answers.write_all(b"x").await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let open = Gauge::default();
    let connection = start(ours, &open, None).await;
    let _lease = connection.lease().unwrap();
    pass(HEAD).await;
    assert_eq!(open.get(), 1, "it is slow, and not silent");
    let after = until_closed(&open).await;
    assert!(after <= Settings::PING_AFTER + Settings::PONG_WITHIN * 2 + AT_ONCE, "then it is: {after:?}");
}

/// A member that sends frames of a kind that HTTP/2 ignores, without a pause. Each read costs as
/// much of the task's budget as one of a socket.
struct Flood(&'static [u8]);

impl AsyncRead for Flood {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(poll_proceed(cx)).made_progress();
        let rest = self.0;
        let (now, later) = rest.split_at(rest.len().min(buf.remaining()));
        buf.put_slice(now);
        self.0 = if later.is_empty() { &[0, 0, 0, 0xfa, 0, 0, 0, 0, 0] } else { later };
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Flood {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Seal for Flood {}

/// A connection to such a member, and the count of open ones.
async fn flooded(target: &Target) -> (Arc<Connection>, Gauge) {
    let (held, open) = (target.held(0), Gauge::default());
    let counted = InFlight::new(&open);
    let connection = Connection::start(Flood(&SETTINGS), target, held, counted, Arc::default(), None).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(open.get(), 1);
    (connection, open)
}

#[tokio::test]
async fn a_member_that_never_stops_sending_does_not_outlive_its_registration() {
    let target = Target::sample();
    let (_connection, open) = flooded(&target).await;
    target.ended.cancel();
    kit::wait::eventually(kit::wait::WAIT, || open.get() == 0).await;
}

#[tokio::test(start_paused = true)]
async fn an_unused_connection_to_a_member_that_never_stops_sending_is_closed_too() {
    let (_connection, open) = flooded(&Target::sample()).await;
    let after = until_closed(&open).await;
    assert!(after <= Settings::PING_AFTER * 2 + Settings::PONG_WITHIN + AT_ONCE, "no answer to PING: {after:?}");
}

/// Streams that were never opened, each depending on itself: h2 answers every one with a reset, and
/// keeps it until it is sent.
fn invented(streams: std::ops::Range<u32>) -> Vec<u8> {
    let frame = |stream: u32| {
        let stream = (2 * stream + 1).to_be_bytes();
        [&[0, 0, 5, 2, 0][..], &stream, &stream, &[0]].concat()
    };
    streams.flat_map(frame).collect()
}

const SETTINGS: [u8; 18] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0];

#[tokio::test(start_paused = true)]
async fn a_member_that_does_not_read_is_owed_a_bounded_number_of_resets() {
    let (ours, theirs) = duplex(64 * 1024);
    let (_requests, mut answers) = tokio::io::split(theirs);
    answers.write_all(&SETTINGS).await.unwrap();
    let open = Gauge::default();
    let _connection = start(ours, &open, None).await;
    let mut streams = 0;
    while streams < 200_000 && answers.write_all(&invented(streams..streams + 1000)).await.is_ok() {
        streams += 1000;
    }
    assert!(streams < 100_000, "{streams} were taken");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_reads_may_have_any_number_of_streams_reset() {
    let (ours, theirs) = duplex(64 * 1024);
    let (mut requests, mut answers) = tokio::io::split(theirs);
    tokio::spawn(async move { tokio::io::copy(&mut requests, &mut tokio::io::sink()).await });
    answers.write_all(&SETTINGS).await.unwrap();
    let open = Gauge::default();
    let _connection = start(ours, &open, None).await;
    for thousand in 0..200 {
        answers.write_all(&invented(thousand * 1000..thousand * 1000 + 1000)).await.unwrap();
    }
    assert_eq!(open.get(), 1);
}
