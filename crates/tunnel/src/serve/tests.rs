//! What a server answers to requests that no [`crate::Link`] sends, and to peers that misbehave.

use std::sync::atomic::AtomicUsize;

use h2::client::SendRequest;
use http::{HeaderMap, Method, Request, StatusCode};
use kit::frames::{Frames, INITIAL_WINDOW_SIZE, SETTINGS, encode, setting};
use kit::wait::within;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::task::JoinHandle;

use super::*;
use crate::refusal::{HOP, MESSAGE, REASON};
use crate::testing::{Pair, to};
use crate::{Hop, OpenError, Reason, Refusal};

const SOON: Duration = Duration::from_secs(20);

/// A plain HTTP/2 client of a server whose handler accepts and keeps every stream open.
async fn client(settings: Settings) -> (SendRequest<Bytes>, Serving, JoinHandle<Result<(), LinkError>>) {
    let (near, far) = duplex(1 << 20);
    let serving = Serving::default();
    let control = serving.clone();
    let handler = |incoming: Incoming| async move {
        if let Ok(mut stream) = incoming.accept() {
            let _ = stream.read(&mut [0]).await;
        }
    };
    let served = tokio::spawn(async move { serve(far, &settings, control, handler).await });
    let mut builder = h2::client::Builder::new();
    builder.max_concurrent_reset_streams(100_000);
    let (sender, connection) = builder.handshake(near).await.unwrap();
    tokio::spawn(connection);
    (sender.ready().await.unwrap(), serving, served)
}

async fn ask(sender: &SendRequest<Bytes>, request: Request<()>) -> (StatusCode, HeaderMap) {
    let (answer, _stream) = sender.clone().send_request(request, false).unwrap();
    let (head, _) = within(SOON, "an answer", answer).await.unwrap().into_parts();
    (head.status, head.headers)
}

fn connect(authority: &str) -> http::request::Builder {
    Request::builder().method(Method::CONNECT).uri(authority)
}

#[tokio::test]
async fn what_is_no_connect_is_told_so() {
    let (sender, serving, _served) = client(Settings::default()).await;
    for (method, path, status) in [
        (Method::GET, "/", 404),
        (Method::POST, "/tunnel/v1/links", 404),
        (Method::GET, "/leave", 405),
        (Method::DELETE, "/leave", 405),
    ] {
        let request = Request::builder().method(&method).uri(format!("http://tunnel{path}")).body(()).unwrap();
        assert_eq!(ask(&sender, request).await.0.as_u16(), status, "{method} {path}");
    }
    let asked = serving.asked_to_leave();
    tokio::pin!(asked);
    assert!(futures_util::poll!(&mut asked).is_pending());
    let leave = Request::post("http://tunnel/leave").body(()).unwrap();
    assert_eq!(ask(&sender, leave).await.0, StatusCode::NO_CONTENT);
    within(SOON, "the request", asked).await;
}

#[tokio::test]
async fn a_malformed_connect_is_told_why() {
    let (sender, serving, _served) = client(Settings::default()).await;
    let requests = [
        (connect("db:0"), "port"),
        (connect("db:65536"), "port"),
        (connect("user@db:443"), "host"),
        (connect("d!b:443"), "host"),
        (connect("[fe80::1]"), "no port"),
        (connect("db:443").header("tunnel-cluster", "North"), "lower-case"),
        (connect("db:443").header("tunnel-cluster", ""), "empty"),
        (connect("db:443").header("tunnel-cluster", "a").header("tunnel-cluster", "a"), "more than one"),
    ];
    for (request, why) in requests {
        let request = request.body(()).unwrap();
        let uri = request.uri().clone();
        let (status, headers) = ask(&sender, request).await;
        assert_eq!((status, &headers[REASON]), (StatusCode::BAD_REQUEST, &"malformed".parse().unwrap()), "{uri}");
        assert!(headers[MESSAGE].to_str().unwrap().contains(why), "{uri}: {headers:?}");
        assert!(!headers.contains_key(HOP));
        let refusal = Refusal::read(status, &headers, Hop::Agent);
        assert_eq!((refusal.hop, refusal.reason), (Hop::Agent, Reason::Malformed));
    }
    assert_eq!(serving.streams(), 0);
}

#[tokio::test]
async fn headers_beyond_the_limit_end_only_their_stream() {
    let (sender, _serving, _served) = client(Settings::default()).await;
    let request = connect("db:443").header("x", "y".repeat(20_000)).body(()).unwrap();
    assert_eq!(ask(&sender, request).await.0, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert_eq!(ask(&sender, connect("db:443").body(()).unwrap()).await.0, StatusCode::OK);
}

#[tokio::test]
async fn opening_and_resetting_fast_exhausts_nothing() {
    let (sender, serving, served) = client(Settings { max_streams: 100, ..Settings::default() }).await;
    for round in 0..200 {
        for _ in 0..100 {
            let request = connect("db:443").body(()).unwrap();
            drop(sender.clone().send_request(request, false).unwrap());
        }
        assert!(serving.streams() <= 100, "{}", serving.streams());
        if round % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
    within(SOON, "all to be forgotten", async {
        while serving.streams() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(ask(&sender, connect("db:443").body(()).unwrap()).await.0, StatusCode::OK);
    assert!(!served.is_finished());
}

#[tokio::test]
async fn handlers_that_do_not_let_go_are_counted() {
    let mut pair = Pair::with(&Settings { max_streams: 3, ..Settings::default() }).await;
    let destination = to("db:443");
    let mut kept = Vec::new();
    for _ in 0..3 {
        let opening = timeout(Duration::from_millis(50), pair.link.open(&destination, None));
        assert!(opening.await.is_err());
        kept.push(pair.incoming.recv().await.unwrap());
    }
    let opened = within(SOON, "an answer", pair.link.open(&destination, None)).await;
    assert!(matches!(opened, Err(OpenError::NotSent(_))), "{opened:?}");
    kept.clear();
    pair.open().await;
}

#[tokio::test]
async fn a_handler_that_panics_ends_its_own_stream() {
    let (near, far) = duplex(1 << 16);
    let calls = Arc::new(AtomicUsize::new(0));
    let handler = move |incoming: Incoming| {
        let call = calls.fetch_add(1, Ordering::Relaxed);
        async move {
            assert!(call > 0, "the first one panics");
            let mut stream = incoming.accept().unwrap();
            stream.write_all(b"fine").await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read(&mut [0]).await;
        }
    };
    let settings = Settings::default();
    tokio::spawn(async move { serve(far, &settings, Serving::default(), handler).await });
    let link = crate::Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
    let first = link.open(&to("db:443"), None).await;
    assert!(matches!(first, Err(OpenError::Lost(_))), "{first:?}");
    let mut second = link.open(&to("db:443"), None).await.unwrap();
    let mut heard = Vec::new();
    second.read_to_end(&mut heard).await.unwrap();
    assert_eq!(heard, b"fine");
}

#[tokio::test(start_paused = true)]
async fn a_peer_without_a_preface_is_not_waited_for_long() {
    let (_near, far) = duplex(1024);
    let error = serve(far, &Settings::default(), Serving::default(), |_| async {}).await.unwrap_err();
    assert!(matches!(error, LinkError::HandshakeTimeout(_)), "{error}");
}

/// h2 walks through all streams for each of these frames.
#[tokio::test]
async fn a_client_that_changes_its_windows_without_an_end_loses_its_link() {
    let (near, far) = duplex(256 * 1024);
    let windows = [1, 2].map(|bytes| encode(SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, bytes))).concat();
    let flood = tokio::spawn(async move {
        let mut frames = Frames::client(near).await.unwrap();
        while frames.send_all(&windows.repeat(10)).await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    let settings = Settings::default();
    let served = serve(far, &settings, Serving::default(), |_| async {});
    let end = within(SOON, "the end", served).await;
    assert!(matches!(end, Err(LinkError::Flood)), "{end:?}");
    within(SOON, "the client's end", flood).await.unwrap();
}

#[tokio::test]
async fn a_drain_asked_for_before_the_start_holds() {
    let (near, far) = duplex(1 << 16);
    let serving = Serving::default();
    serving.drain();
    let settings = Settings::default();
    let served = tokio::spawn(async move { serve(far, &settings, serving, |_| async {}).await });
    if let Ok(link) = crate::Link::start(near, &Settings::default(), Hop::Agent).await {
        within(SOON, "GOAWAY", link.leaving()).await;
    }
    within(SOON, "the end", served).await.unwrap().unwrap();
}
