//! Counts what hyper reads from a member into its own buffer: a head until it is complete, and as
//! much of a body as hyper reads ahead. Knows whether hyper still has bytes for the member.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::holding::{self, Account, Tally};

/// A connection to a member, whose heads count for its account.
pub struct Reading<T> {
    stream: T,
    buffer: Arc<Buffer>,
    /// Counts the largest head, because hyper's buffer keeps the space for it.
    tally: Tally,
    /// Bytes of the incomplete head so far.
    head: usize,
}

/// Most bytes until a response head is complete: those of the head itself, at most a quarter of
/// this limit, and of interim responses (1xx), which hyper skips uncounted. Without a limit they
/// could continue as long as the caller waits.
const MOST_BEFORE_ANSWER: usize = 4 * super::HEADER_BYTES;

/// hyper's buffer at its last read.
#[derive(Default)]
pub struct Buffer {
    room: AtomicUsize,
    /// The next bytes belong to a body.
    in_body: AtomicBool,
    /// The next bytes begin a head.
    begins: AtomicBool,
    /// The last write or flush towards the member waits.
    is_unwritten: AtomicBool,
}

// === impl Buffer ===

impl Buffer {
    /// The next bytes belong to a body, or otherwise to a head.
    pub fn expect_body(&self, is_body: bool) {
        self.in_body.store(is_body, Ordering::Relaxed);
        self.begins.store(!is_body, Ordering::Relaxed);
    }

    /// Bytes of a body that may be held here: the last read, and what waits to be taken.
    pub fn held(&self) -> usize {
        2 * self.room.load(Ordering::Relaxed)
    }

    /// Whether hyper, or TLS, has bytes that the member has not taken.
    pub fn is_unwritten(&self) -> bool {
        self.is_unwritten.load(Ordering::Relaxed)
    }
}

// === impl Reading ===

impl<T> Reading<T> {
    pub fn new(stream: T, account: &Account) -> (Self, Arc<Buffer>) {
        let buffer = Arc::<Buffer>::default();
        (Self { stream, buffer: Arc::clone(&buffer), tally: account.tally(), head: 0 }, buffer)
    }

    /// Returns only the stream, after hyper has released the connection.
    pub fn into_inner(self) -> T {
        self.stream
    }

    fn wrote<R>(&self, written: Poll<R>) -> Poll<R> {
        if written.is_pending() {
            self.buffer.is_unwritten.store(true, Ordering::Relaxed);
        }
        written
    }

    fn read(&mut self, bytes: usize) {
        if self.buffer.in_body.load(Ordering::Relaxed) {
            self.head = 0;
            return;
        }
        // The response before may have come complete in one read, so that no bytes of its body were
        // read.
        if self.buffer.begins.swap(false, Ordering::Relaxed) {
            self.head = 0;
        }
        self.head += bytes;
        self.tally.raise(holding::room(self.head));
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Reading<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        self.buffer.room.store(buf.remaining(), Ordering::Relaxed);
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.read(buf.filled().len() - before);
        if self.head > MOST_BEFORE_ANSWER {
            return Poll::Ready(Err(io::Error::other("it sent more than 4 MiB before its answer")));
        }
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Reading<T> {
    net::forward!(stream: is_write_vectored, poll_shutdown);
    net::forward!(stream then wrote: poll_write, poll_write_vectored);

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.buffer.is_unwritten.store(flushed.is_pending(), Ordering::Relaxed);
        flushed
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Empty};
    use hyper::client::conn::http1;
    use hyper_util::rt::TokioIo;
    use kit::wait::{WAIT, unless_quiet, within};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;
    use crate::holding::Budget;

    const LARGE: usize = 300 << 10;

    fn account() -> Account {
        holding::open(&Budget::new(1 << 40), 0, [10, 0, 0, 1].into())
    }

    #[tokio::test]
    async fn a_head_counts_and_its_room_for_as_long_as_the_connection_lives() {
        let (account, (ours, mut theirs)) = (account(), duplex(1 << 20));
        let before = account.held();
        let (mut reading, buffer) = Reading::new(ours, &account);
        let mut piece = vec![0; 8 << 10];
        for _ in 0..LARGE / piece.len() {
            theirs.write_all(&piece).await.unwrap();
            reading.read_exact(&mut piece).await.unwrap();
        }
        assert!(account.held() - before >= LARGE as u64);
        buffer.expect_body(true);
        theirs.write_all(&piece).await.unwrap();
        reading.read_exact(&mut piece).await.unwrap();
        buffer.expect_body(false);
        assert!(account.held() - before >= LARGE as u64, "for the next");
        let _stream = reading.into_inner();
        assert_eq!(account.held(), before);
    }

    /// Each comes in one read, so that no read is of a body.
    #[tokio::test]
    async fn answers_one_after_the_other_do_not_add_up() {
        let (account, (ours, mut theirs)) = (account(), duplex(1 << 20));
        let before = account.held();
        let (mut reading, buffer) = Reading::new(ours, &account);
        let mut answer = vec![0; 8 << 10];
        for _ in 0..100 {
            buffer.expect_body(false);
            theirs.write_all(&answer).await.unwrap();
            reading.read_exact(&mut answer).await.unwrap();
            buffer.expect_body(true);
        }
        let held = account.held() - before;
        assert!(held <= 4 * answer.len() as u64, "{held}");
    }

    /// The bytes that hyper has read from a member that sends without end.
    #[tokio::test]
    async fn what_nobody_takes_of_a_body_is_known() {
        const ROOM: usize = 64 << 10;
        let (account, (ours, mut theirs)) = (account(), duplex(ROOM));
        let (reading, buffer) = Reading::new(ours, &account);
        let (mut sender, driver) =
            http1::Builder::new().max_buf_size(1 << 20).handshake(TokioIo::new(reading)).await.unwrap();
        tokio::spawn(driver);
        let sent = tokio::spawn(async move {
            theirs.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n").await.unwrap();
            let (mut sent, piece) = (0, vec![0; 4 << 10]);
            while unless_quiet(std::time::Duration::from_millis(200), theirs.write_all(&piece)).await.is_some() {
                sent += piece.len();
            }
            (sent, theirs)
        });
        let request = http::Request::get("/").body(Empty::<Bytes>::new()).unwrap();
        let mut body = sender.send_request(request).await.unwrap().into_body();
        buffer.expect_body(true);
        let mut taken = 0;
        while taken < 40 * ROOM {
            let frame = within(WAIT, "a frame", body.frame()).await.unwrap().unwrap();
            taken += frame.into_data().unwrap().len();
        }
        let (sent, _theirs) = sent.await.unwrap();
        // The bytes in the pipe are not in hyper's memory.
        let held = sent - taken - ROOM.min(sent - taken);
        assert!(held > 0 && buffer.held() >= held, "{held} bytes, and {} are known", buffer.held());
    }
}
