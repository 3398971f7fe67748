use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::HeaderValue;
use http::header::COOKIE;
use kit::wait::{WAIT, within};
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use super::*;
use crate::metrics::InFlight;
use crate::request_body::RequestBody;

/// A stream to a peer that does not read all: TLS does not end before all is sent.
struct Unread {
    stream: DuplexStream,
}

impl AsyncRead for Unread {
    net::forward!(stream: poll_read);
}

impl AsyncWrite for Unread {
    net::forward!(stream: poll_write, poll_flush);

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

fn large() -> BoxedRequest {
    let mut request = Request::new(RequestBody::empty(None));
    request.headers_mut().insert(COOKIE, HeaderValue::from_bytes(&vec![b'x'; 400 << 10]).unwrap());
    Box::new(request)
}

/// Otherwise each cancelled request would leave its head there for as long as the member likes.
#[tokio::test]
async fn a_connection_ends_with_its_request_although_the_member_does_not_read() {
    let (target, idle) = (Target::sample(), Arc::<Idle>::default());
    let permit = idle.permit(InFlight::new(&Gauge::default())).unwrap();
    let (stream, mut theirs) = duplex(1024);
    let connection = Connection::over(Unread { stream }, None, permit, &target, target.held(0)).await.unwrap();
    let mut sending = Box::pin(send(Lease::new(connection, Arc::downgrade(&idle)), &target, large()));
    tokio::select! {
        _ = &mut sending => panic!("there is no answer"),
        begins = theirs.read_u8() => assert_eq!(begins.unwrap(), b'G'),
    }
    drop(sending);
    within(WAIT, "the end of the connection", async { while theirs.write_all(b"x").await.is_ok() {} }).await;
}

/// Otherwise the heads would stay with idle connections, and count for nobody.
#[tokio::test]
async fn a_connection_serves_no_other_request_while_the_member_has_not_read_this_one() {
    for (room, is_kept) in [(1024, false), (1 << 20, true)] {
        let (target, idle) = (Target::sample(), Arc::<Idle>::default());
        let permit = idle.permit(InFlight::new(&Gauge::default())).unwrap();
        let (stream, mut theirs) = duplex(room);
        let connection = Connection::over(stream, None, permit, &target, target.held(0)).await.unwrap();
        let sending = tokio::spawn(async move {
            let sent = send(Lease::new(connection, Arc::downgrade(&idle)), &target, large()).await;
            let Ok(Sent::Response(response)) = sent else { panic!("no answer") };
            drop(response);
            idle.take().is_some()
        });
        assert_eq!(theirs.read_u8().await.unwrap(), b'G');
        theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        assert_eq!(within(WAIT, "the answer", sending).await.unwrap(), is_kept, "{room}");
    }
}
