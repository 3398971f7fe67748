use bytes::Bytes;
use http::{Method, Request, Response};
use kit::wait::within;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use super::*;
use crate::testing::{Pair, to};
use crate::{Hop, Incoming, Link, Serving, Settings, serve};

const SOON: Duration = Duration::from_secs(20);

fn read(values: &[&str]) -> Timing {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(TIMING, HeaderValue::from_str(value).unwrap());
    }
    Timing::read(&headers)
}

fn told(agent: u64, dial: u64) -> Timing {
    Timing::of_dial(Duration::from_micros(dial)).with_agent(Duration::from_micros(agent))
}

#[test]
fn what_is_written_is_read() {
    for timing in [told(2_104, 412), told(1, 1), told(60_000_000, 59_999_999), Timing::default()] {
        let mut headers = HeaderMap::new();
        timing.write(&mut headers);
        assert_eq!(Timing::read(&headers), timing, "{headers:?}");
    }
    let mut headers = HeaderMap::new();
    told(2_104, 412).write(&mut headers);
    assert_eq!(headers[TIMING], "agent;dur=2.104, dial;dur=0.412");
    let mut headers = HeaderMap::new();
    Timing::default().write(&mut headers);
    assert!(headers.is_empty());
}

#[test]
fn others_write_it_otherwise() {
    for values in
        [&["dial;dur=0.412,agent;dur=2.104"][..], &["cdn;desc=\"a\"", "agent;x=1; dur = 2.104", "dial;dur=.412"]]
    {
        assert_eq!(read(values), told(2_104, 412), "{values:?}");
    }
    assert_eq!(read(&["dial;dur=0"]).dial(), Some(Duration::from_micros(1)), "no dial takes no time");
}

#[test]
fn what_is_no_time_is_not_told() {
    for value in [
        "",
        "agent",
        "dial;dur=",
        "dial;dur=x",
        "dial;dur=-1",
        "dial;dur=NaN",
        "dial;dur=inf",
        "dial;dur=1e99",
        "dial=3",
    ] {
        assert_eq!(read(&[value]), Timing::default(), "{value}");
    }
    let long = format!("dial;dur=1;desc=\"{}\"", "x".repeat(LONGEST));
    assert_eq!(read(&[&long]), Timing::default());
    let many = ["a;dur=1", "b;dur=1", "c;dur=1", "d;dur=1", "dial;dur=1"];
    assert_eq!(read(&many), Timing::default());
}

/// An acceptor without this crate: another implementation, or an older one.
async fn opened_by(header: Option<&'static str>) -> Timing {
    let (near, far) = duplex(64 * 1024);
    tokio::spawn(async move {
        let mut server = h2::server::handshake(far).await.unwrap();
        let mut streams = Vec::new();
        while let Some(Ok((request, mut respond))) = server.accept().await {
            let answer = header.into_iter().fold(Response::builder(), |answer, told| answer.header(TIMING, told));
            streams.push((request, respond.send_response(answer.body(()).unwrap(), false).unwrap()));
        }
    });
    let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
    within(SOON, "a stream", link.open(&to("db:5432"), None)).await.unwrap().timing()
}

#[tokio::test]
async fn an_acceptor_may_tell_nothing_or_something_else() {
    assert_eq!(opened_by(None).await, Timing::default());
    assert_eq!(opened_by(Some("miss, db;dur=53, app;dur=47.2")).await, Timing::default());
    assert_eq!(opened_by(Some("db;dur=53, dial;dur=0.412")).await.dial(), Some(Duration::from_micros(412)));
}

#[tokio::test]
async fn an_opener_hears_what_the_acceptor_tells() {
    let mut pair = Pair::new().await;
    let accept = async { pair.incoming.recv().await.unwrap().accept_timed(told(2_104, 412)).unwrap() };
    let destination = to("db:5432");
    let (near, far) = tokio::join!(pair.link.open(&destination, None), accept);
    assert_eq!((near.unwrap().timing(), far.timing()), (told(2_104, 412), Timing::default()));
}

/// An older opener is a plain HTTP/2 client that reads only the status.
#[tokio::test]
async fn an_opener_may_ignore_it() {
    let (near, far) = duplex(64 * 1024);
    let handler = |incoming: Incoming| async move {
        let mut stream = incoming.accept_timed(told(2_104, 412)).unwrap();
        stream.write_all(b"hello").await.unwrap();
        let _ = stream.read(&mut [0]).await;
    };
    tokio::spawn(async move { serve(far, &Settings::default(), Serving::default(), handler).await });
    let (mut sender, connection) = h2::client::handshake(near).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method(Method::CONNECT).uri("db:5432").body(()).unwrap();
    let (answer, _send): (_, h2::SendStream<Bytes>) = sender.send_request(request, false).unwrap();
    let mut answer = within(SOON, "an answer", answer).await.unwrap();
    assert_eq!(answer.status(), 200);
    let said = within(SOON, "bytes", answer.body_mut().data()).await.unwrap().unwrap();
    assert_eq!(said, "hello");
}
