//! The clients' own judgements: framing, ALPN, plain connections, delays.

use tokio::io::{AsyncWriteExt as _, duplex};

use super::*;

async fn parse(answer: &str) -> (H1Head, Result<String, H1Error>) {
    let (near, mut far) = duplex(4096);
    far.write_all(answer.as_bytes()).await.expect("room");
    drop(far);
    let mut h1 = H1Connection::over(Box::new(near));
    let head = h1.head().await.expect("a head");
    let body = h1.body().await.map(|body| String::from_utf8_lossy(&body).into_owned());
    (head, body)
}

#[tokio::test]
async fn bodies_end_where_their_framing_says() {
    let (head, body) = parse("HTTP/1.1 200 Fine Thing\r\nContent-Length: 3\r\nX-A: 1\r\nx-a: 2\r\n\r\nabcdef").await;
    assert_eq!((head.status, head.reason.as_str(), body.expect("whole").as_str()), (200, "Fine Thing", "abc"));
    assert_eq!(head.headers.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
    let (_, body) =
        parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n").await;
    assert_eq!(body.expect("whole"), "abcde");
    let (_, body) = parse("HTTP/1.1 200 OK\r\n\r\nto the end").await;
    assert_eq!(body.expect("whole"), "to the end");
    let (_, body) = parse("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n").await;
    assert_eq!(body.expect("whole"), "");
}

#[tokio::test]
async fn broken_framing_is_an_error() {
    let (_, body) = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n").await;
    assert!(matches!(body, Err(H1Error::Malformed(_))), "{body:?}");
    let (_, body) = parse("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n").await;
    assert!(matches!(body, Err(H1Error::Truncated(3))), "{body:?}");
    let (near, mut far) = duplex(64);
    far.write_all(b"HTTP/1.1 200 OK\r\nContent-").await.expect("room");
    drop(far);
    let error = H1Connection::over(Box::new(near)).head().await.expect_err("half a head");
    assert!(matches!(error, H1Error::NoAnswer), "{error:?}");
}

#[tokio::test]
async fn trailers_follow_the_last_chunk() {
    let (near, mut far) = duplex(4096);
    far.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-End: yes\r\n\r\nrest")
        .await
        .expect("room");
    let mut h1 = H1Connection::over(Box::new(near));
    h1.head().await.expect("a head");
    assert_eq!(h1.body().await.expect("whole"), "a");
    assert_eq!((&h1.trailers()["x-end"], h1.leftover()), (&http::HeaderValue::from_static("yes"), &b"rest"[..]));
}

#[tokio::test]
async fn a_held_window_stops_a_plain_http2_server() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let address = listener.local_addr().expect("bound");
    let server = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.expect("a client");
        let mut connection = ::h2::server::handshake(tcp).await.expect("a preface");
        let (_, mut respond) = connection.accept().await.expect("a request").expect("well formed");
        let mut stream = respond.send_response(http::Response::new(()), false).expect("open");
        stream.send_data(vec![7; 200_000].into(), true).expect("queued");
        while connection.accept().await.is_some() {}
    });
    let options = H2Options { stream_window: 100_000, ..H2Options::default() };
    let h2 = Client::plain(address).h2_options(options).h2().await.expect("prior knowledge");
    let mut answer = h2.get("/", &[]).await.expect("a head");
    let mut read = 0;
    let held = async {
        while let Some(chunk) = answer.body.chunk_held().await {
            read += chunk.expect("open").len();
        }
    };
    assert!(tokio::time::timeout(std::time::Duration::from_millis(200), held).await.is_err(), "the window is used up");
    assert_eq!(read, 100_000);
    answer.body.release();
    assert_eq!(answer.body.to_end().await.expect("the rest").len(), 100_000);
    drop(h2);
    server.await.expect("served");
}

#[tokio::test]
async fn a_late_connection_is_an_error_to_those_that_repeat_it() {
    // The system accepts for it, and nothing speaks TLS.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
    let options = H2Options { wait: std::time::Duration::from_millis(100), ..H2Options::default() };
    let address = listener.local_addr().expect("bound");
    let client = Client::new(address, Trust::Anyone, None).h2_options(options);
    let late = [client.tls(&[]).await.err(), client.http1::<String>().await.err()];
    assert_eq!(late.map(|error| error.map(|error| error.kind())), [Some(io::ErrorKind::TimedOut); 2]);
}
