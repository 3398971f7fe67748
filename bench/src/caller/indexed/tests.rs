//! Against a server of the `h2` crate, which resolves the indexed fields.

use bytes::Bytes;
use http::header::HeaderValue;
use http::{Request, Response, StatusCode};
use tokio::io::{DuplexStream, duplex};
use tokio::sync::mpsc;

use super::*;

const TIME: Duration = Duration::from_secs(1);
/// The request with which the time is over: no real clock decides how many there are.
const LAST: usize = 50;

fn request() -> Request<()> {
    let mut request = Request::get("https://127.0.0.1:6443/api/v1/pods?limit=1").body(()).unwrap();
    request.headers_mut().insert("x-remote-user", HeaderValue::from_static("jane"));
    for group in 0..40 {
        let value = HeaderValue::from_str(&format!("team-{group}")).unwrap();
        request.headers_mut().append("x-remote-group", value);
    }
    request.headers_mut().insert("x-long", HeaderValue::from_str(&"x".repeat(300)).unwrap());
    request
}

/// Answers with `status` and sends each request to `seen`.
async fn serve(io: DuplexStream, status: StatusCode, seen: mpsc::UnboundedSender<Request<()>>) {
    let mut connection = h2::server::handshake(io).await.unwrap();
    let mut served = 0;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        seen.send(request.map(drop)).unwrap();
        served += 1;
        if served == LAST {
            tokio::time::advance(TIME).await;
        }
        let answer = Response::builder().status(status).body(()).unwrap();
        let mut body = respond.send_response(answer, false).unwrap();
        body.send_data(Bytes::from_static(b"{}"), true).unwrap();
    }
}

async fn asked(status: StatusCode) -> (Result<u32>, Vec<Request<()>>) {
    let (near, far) = duplex(64 << 10);
    let (seen, mut requests) = mpsc::unbounded_channel();
    let server = tokio::spawn(serve(far, status, seen));
    let blocks = Blocks::of(&request()).unwrap();
    let count = ask(near, &blocks, 8, Instant::now() + TIME).await;
    server.await.unwrap();
    let mut all = Vec::new();
    while let Some(request) = requests.recv().await {
        all.push(request);
    }
    (count, all)
}

#[tokio::test(start_paused = true)]
async fn every_request_says_the_same_as_the_first() {
    let (count, requests) = asked(StatusCode::OK).await;
    let count = usize::try_from(count.unwrap()).unwrap();
    assert_eq!(count, requests.len());
    assert!(
        (LAST..LAST + 16).contains(&count),
        "{count}: those under way when the time is over are answered, and no more are sent"
    );
    for asked in requests {
        assert_eq!(
            (asked.method(), asked.uri(), asked.headers()),
            (&Method::GET, request().uri(), request().headers())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_other_than_200_is_an_error() {
    let (count, _) = asked(StatusCode::FORBIDDEN).await;
    assert_eq!(count.unwrap_err().to_string(), "an answer other than 200");
}

#[test]
fn what_repeats_takes_a_byte_or_two() {
    let blocks = Blocks::of(&request()).unwrap();
    let path = "/api/v1/pods?limit=1".len();
    assert!(blocks.again.len() < path + 2 * 43 + 10, "{} bytes", blocks.again.len());
}

#[test]
fn what_does_not_fit_the_peers_table_is_refused() {
    let mut request = request();
    request.headers_mut().insert("x-longer", HeaderValue::from_str(&"x".repeat(4000)).unwrap());
    assert!(Blocks::of(&request).is_err());
}
