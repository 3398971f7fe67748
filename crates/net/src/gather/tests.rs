mod encrypted;

use std::future::poll_fn;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::time::{Duration, timeout};

use super::gathering::MOST;
use super::*;
use crate::seal::RECORD;

/// Counts the writes that reach the stream below.
struct Counted {
    stream: DuplexStream,
    writes: usize,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.writes += 1;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writes += 1;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Seal for Counted {}

fn pair(room: usize) -> (Gathered<Counted>, Outlet<Counted>, DuplexStream) {
    let (near, far) = duplex(room);
    let (gathered, outlet) = gather(Counted { stream: near, writes: 0 });
    (gathered, outlet, far)
}

/// Data in which every byte shows its position.
fn numbered(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| u8::try_from(at % 251).expect("less")).collect()
}

/// Runs `library` to its end while `far` reads slowly. Checks that exactly `expected` arrives.
async fn arrives<T: AsyncWrite + Seal + Unpin>(
    outlet: Outlet<T>,
    library: Pin<Box<impl Future<Output = ()>>>,
    mut far: impl AsyncRead + Unpin + Send + 'static,
    expected: &[u8],
) {
    let reader = tokio::spawn(async move {
        let mut read = Vec::new();
        while far.read_buf(&mut read).await.unwrap() > 0 {}
        read
    });
    timeout(Duration::from_secs(20), outlet.drive(library)).await.expect("nobody waits for ever");
    assert!(reader.await.unwrap() == expected, "another order, or other bytes");
}

#[tokio::test]
async fn what_one_turn_writes_is_written_once() {
    let (mut gathered, outlet, mut far) = pair(64 * 1024);
    let library = Box::pin(async move {
        for number in 0..10 {
            gathered.write_all(&[number; 100]).await.unwrap();
            gathered.flush().await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    let mut driven = outlet.drive(library);
    let goes_on = poll_fn(|cx| Poll::Ready(Pin::new(&mut driven).poll(cx).is_pending())).await;
    assert!(goes_on);
    let mut read = [0; 1000];
    far.read_exact(&mut read).await.unwrap();
    assert_eq!((read[0], read[999]), (0, 9));
    let gathering = driven.gathering.lock();
    assert_eq!((gathering.stream.writes, gathering.waiting.capacity()), (1, 0));
}

#[tokio::test]
async fn a_slow_reader_holds_the_writer_back_and_gets_everything() {
    let sent = numbered(1024 * 1024);
    let (mut gathered, outlet, far) = pair(1000);
    let expected = sent.clone();
    let library = Box::pin(async move {
        gathered.write_all(&sent).await.unwrap();
        assert!(gathered.0.lock().held() <= MOST);
        gathered.shutdown().await.unwrap();
    });
    arrives(outlet, library, far, &expected).await;
}

#[tokio::test]
async fn a_failure_to_send_reaches_whoever_writes_next() {
    let (mut gathered, outlet, far) = pair(10);
    drop(far);
    let library = Box::pin(async move {
        gathered.write_all(b"for nobody").await.unwrap();
        tokio::task::yield_now().await;
        gathered.write_all(b"more").await.unwrap_err().kind()
    });
    let end = timeout(Duration::from_secs(20), outlet.drive(library)).await.expect("it is told");
    assert_eq!(end, io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_turn_reads_no_more_than_it_may_and_the_next_goes_on() {
    let (mut gathered, outlet, mut far) = pair(1 << 20);
    let sent = numbered(50_000);
    far.write_all(&sent).await.unwrap();
    let reading = Box::pin(async move {
        let mut all = Vec::new();
        while all.len() < 50_000 {
            let mut piece = [0; 1000];
            let read = gathered.read(&mut piece).await.unwrap();
            all.extend_from_slice(&piece[..read]);
        }
        all
    });
    let (mut driven, mut turns) = (outlet.drive(reading).reading_at_most(10_000), 0);
    let read = poll_fn(|cx| {
        turns += 1;
        Pin::new(&mut driven).poll(cx)
    });
    assert!(read.await == sent);
    assert_eq!(turns, 5);
}
