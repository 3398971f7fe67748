//! Tests the moment at which the member's first bytes go out, to the millisecond.

use tokio::io::{AsyncReadExt as _, DuplexStream, duplex};
use tokio::time::{Instant, timeout};

use super::*;

/// A socket that does not report when its peer has read, as TCP does not.
struct Mute(DuplexStream);

impl AsyncRead for Mute {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Mute {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl Socket for Mute {
    fn abort(self) {}
}

impl Front for Mute {
    async fn announce(&mut self, answer: &'static [u8]) -> io::Result<Pause> {
        self.write_all(answer).await?;
        Ok(Pause::FromNow(MOMENT))
    }

    fn poll_taken(&self, _: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }
}

async fn connected(early: &'static [u8]) -> (Client<Mute>, DuplexStream) {
    let (ours, mut theirs) = duplex(64);
    let client = Client::connected(Mute(ours), Bytes::from_static(early), b"200").await.expect("there is room");
    let mut answer = [0; 3];
    theirs.read_exact(&mut answer).await.expect("the answer is out at once");
    (client, theirs)
}

#[tokio::test(start_paused = true)]
async fn the_member_waits_for_a_moment_and_only_the_first_time() {
    let (mut client, _peer) = connected(b"").await;
    let started = Instant::now();
    client.write_all(b"banner").await.expect("written");
    assert_eq!(started.elapsed(), MOMENT);
    client.write_all(b"more").await.expect("written");
    assert_eq!(started.elapsed(), MOMENT);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_speaks_is_waited_for_no_longer() {
    let (client, mut peer) = connected(b"").await;
    let started = Instant::now();
    let (mut from, mut to) = tokio::io::split(client);
    let banner = tokio::spawn(async move {
        to.write_all(b"banner").await.expect("written");
        started.elapsed()
    });
    sleep(MOMENT / 4).await;
    peer.write_all(b"hello").await.expect("sent");
    from.read_exact(&mut [0; 5]).await.expect("heard");
    assert_eq!(banner.await.expect("no panic"), MOMENT / 4);
}

#[tokio::test(start_paused = true)]
async fn early_bytes_come_first_and_prove_nothing() {
    let (mut client, mut peer) = connected(b"early").await;
    peer.write_all(b", late").await.expect("sent");
    let mut heard = [0; 5];
    client.read_exact(&mut heard).await.expect("heard");
    assert_eq!(&heard, b"early");
    assert!(timeout(MOMENT / 2, client.write_all(b"banner")).await.is_err(), "it may not have seen the answer");
    let mut heard = [0; 6];
    client.read_exact(&mut heard).await.expect("heard");
    assert_eq!(&heard, b", late");
    timeout(MOMENT / 4, client.write_all(b"banner")).await.expect("at once").expect("written");
}
