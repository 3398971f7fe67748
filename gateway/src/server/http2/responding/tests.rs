//! Responses of requests that had to give way while these were made, and to clients that do not
//! read.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;
use http::{Method, Request, Uri};
use kit::wait::{WAIT, eventually, within};
use net::budget::Holder as _;
use tokio::io::duplex;
use tokio::sync::mpsc;

use super::*;
use crate::body::ResponseBody;
use crate::holding::Budget;

/// The response to a request whose account ends while it is handled: `body` is the gateway's own,
/// and `window` the client's room.
async fn ended_answer(body: Vec<u8>, is_refusal: bool, window: u32) -> Result<usize, h2::Error> {
    let (ours, theirs) = duplex(1 << 20);
    tokio::spawn(async move {
        let mut connection = h2::server::handshake(ours).await.unwrap();
        let (_, respond) = connection.accept().await.unwrap().unwrap();
        let budget = Budget::new(1 << 30);
        let client = holding::open(&budget, 0, [10, 0, 0, 1].into());
        let account =
            holding::open_request(&budget, 0, &client, (&Method::GET, &Uri::from_static("/")), &http::HeaderMap::new());
        let handling = async move {
            account.holder().end();
            let mut response = Response::new(RecordedBody::new(ResponseBody::full(body), None));
            if is_refusal {
                response.extensions_mut().insert(ToldToGiveWay);
            }
            (response, account)
        };
        tokio::spawn(Responding::new(handling, respond));
        while connection.accept().await.is_some() {}
    });
    let (mut requests, driver) =
        h2::client::Builder::new().initial_window_size(window).handshake::<_, Bytes>(theirs).await.unwrap();
    tokio::spawn(driver);
    let request = Request::get("https://gateway/").body(()).unwrap();
    let (answer, _) = requests.send_request(request, true).unwrap();
    let mut body = answer.await?.into_body();
    let mut read = 0;
    while let Some(piece) = body.data().await {
        read += piece?.len();
    }
    Ok(read)
}

/// For example a list of thousands of clusters.
#[tokio::test]
async fn a_large_answer_of_our_own_is_not_taken_for_the_refusal() {
    let ended = within(WAIT, "the reset", ended_answer(vec![0; 8 << 20], false, 0)).await;
    assert_eq!(ended.unwrap_err().reason(), Some(Reason::ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn the_refusal_itself_is_sent() {
    let read = within(WAIT, "the refusal", ended_answer(vec![0; 1000], true, 65_535)).await;
    assert_eq!(read.unwrap(), 1000);
}

/// Each piece that waits takes a slot of h2, which the connection keeps.
#[tokio::test]
async fn few_pieces_wait_for_a_client_that_does_not_read() {
    const PIECES: usize = 20_000;
    let (ours, theirs) = duplex(1 << 10);
    let mut builder = h2::client::Builder::new();
    let handshake = builder.data_frame_budget(PIECES * 255).handshake::<_, Bytes>(theirs);
    let (server, client) = tokio::join!(h2::server::handshake(ours), handshake);
    let (mut connection, (mut requests, mut driver)) = (server.unwrap(), client.unwrap());
    let (answer, _) = requests.send_request(Request::get("https://gateway/").body(()).unwrap(), true).unwrap();
    let (_, respond) = tokio::select! {
        request = connection.accept() => request.unwrap().unwrap(),
        end = &mut driver => panic!("it ended: {end:?}"),
    };
    let made = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&made);
    let handling = async move {
        let client = holding::open(&Budget::new(1 << 30), 0, [10, 0, 0, 1].into());
        let account = holding::open_request(
            &Budget::new(1 << 30),
            0,
            &client,
            (&Method::GET, &Uri::from_static("/")),
            &http::HeaderMap::new(),
        );
        let piece = move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            Bytes::from_static(b"x")
        };
        let body = ResponseBody::stream(Box::pin(stream::iter((0..PIECES).map(piece))));
        (Response::new(RecordedBody::new(body, None)), account)
    };
    tokio::spawn(Responding::new(handling, respond));
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    eventually(WAIT, || made.load(Ordering::Relaxed) > 0).await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // The library writes some 16 KiB ahead, of ten bytes for each.
    let waiting = made.load(Ordering::Relaxed);
    assert!(waiting < 4000, "{waiting} pieces wait");
    tokio::spawn(driver);
    let mut body = answer.await.unwrap().into_body();
    let mut read = 0;
    while let Some(piece) = within(WAIT, "a piece", body.data()).await {
        let piece = piece.unwrap();
        read += piece.len();
        body.flow_control().release_capacity(piece.len()).unwrap();
    }
    assert_eq!(read, PIECES);
}

/// The window has room for all events: room that the task asked for itself does not wake it.
#[tokio::test]
async fn an_event_of_a_watch_costs_one_poll() {
    const EVENTS: usize = 20;
    let (ours, theirs) = duplex(1 << 16);
    let (server, client) = tokio::join!(h2::server::handshake(ours), h2::client::handshake(theirs));
    let (mut connection, (mut requests, driver)) = (server.unwrap(), client.unwrap());
    tokio::spawn(driver);
    let (answer, _) = requests.send_request(Request::get("https://gateway/").body(()).unwrap(), true).unwrap();
    let (_, respond) = within(WAIT, "the request", connection.accept()).await.unwrap().unwrap();
    tokio::spawn(async move { while connection.accept().await.is_some() {} });
    let client = holding::open(&Budget::new(1 << 30), 0, [10, 0, 0, 1].into());
    let (events, mut received) = mpsc::channel::<Bytes>(1);
    let body = ResponseBody::stream(Box::pin(stream::poll_fn(move |cx| received.poll_recv(cx))));
    let handling = async move { (Response::new(RecordedBody::new(body, None)), client) };
    let polls = Arc::<AtomicUsize>::default();
    let (count, mut responding) = (Arc::clone(&polls), Responding::new(handling, respond));
    tokio::spawn(poll_fn(move |cx| {
        count.fetch_add(1, Ordering::Relaxed);
        Pin::new(&mut responding).poll(cx)
    }));
    let mut watch = within(WAIT, "a head", answer).await.unwrap().into_body();
    let before = polls.load(Ordering::Relaxed);
    for _ in 0..EVENTS {
        events.send(Bytes::from_static(b"event")).await.unwrap();
        let event = within(WAIT, "an event", watch.data()).await.unwrap();
        assert_eq!(event.unwrap(), "event");
    }
    tokio::task::yield_now().await;
    assert_eq!(polls.load(Ordering::Relaxed) - before, EVENTS);
}
