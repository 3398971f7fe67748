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

/// Otherwise each cancelled request would leave its head there for as long as the member likes.
#[tokio::test]
async fn a_connection_ends_with_its_request_although_the_member_does_not_read() {
    let (target, idle) = (Target::sample(), Arc::<Idle>::default());
    let permit = idle.permit(InFlight::new(&Gauge::default())).unwrap();
    let (stream, mut theirs) = duplex(1024);
    let connection = Connection::over(Unread { stream }, None, permit, &target, target.held(0)).await.unwrap();
    let mut request = Request::new(RequestBody::empty(None));
    request.headers_mut().insert(COOKIE, HeaderValue::from_bytes(&vec![b'x'; 400 << 10]).unwrap());
    let mut sending = Box::pin(send(Lease::new(connection, Arc::downgrade(&idle)), &target, request));
    tokio::select! {
        _ = &mut sending => panic!("there is no answer"),
        begins = theirs.read_u8() => assert_eq!(begins.unwrap(), b'G'),
    }
    drop(sending);
    within(WAIT, "the end of the connection", async { while theirs.write_all(b"x").await.is_ok() {} }).await;
}
