//! Peers that send one byte per frame.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kit::frames::{END_HEADERS, HEADERS, STATUS_200, encode};
use kit::wait::{WAIT, eventually, unless_quiet, within};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf, duplex, split};
use tokio::sync::oneshot;

use super::inbound::STEP;
use super::*;
use crate::testing::{Pair, asked, to};
use crate::{Hop, Link, Serving, Settings, serve};

const FRAMES: usize = 20_000;
/// Less than a window.
const MUCH: usize = 640 << 10;

/// The numbers that an observer got, and the bytes that wait to be sent.
#[derive(Debug, Default)]
struct Observed(parking_lot::Mutex<Vec<usize>>, Arc<AtomicUsize>);

/// Counts down when it is dropped.
struct Unsent(Bytes, Arc<AtomicUsize>);

impl HeldObserver for Observed {
    fn unread(&self, bytes: usize) {
        self.0.lock().push(bytes);
    }

    fn unsent(&self, data: Bytes) -> Bytes {
        self.1.fetch_add(data.len(), Ordering::Relaxed);
        Bytes::from_owner(Unsent(data, Arc::clone(&self.1)))
    }
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Unsent {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

// === impl Observed ===

impl Observed {
    fn last(&self) -> usize {
        self.0.lock().last().copied().unwrap_or_default()
    }

    fn waiting(&self) -> usize {
        self.1.load(Ordering::Relaxed)
    }
}

/// h2 has room for two hundred short frames before it ends the link.
fn strict() -> Settings {
    Settings { short_frames: 200 * 255, ..Settings::default() }
}

fn held(stream: &Stream) -> usize {
    stream.inbound.lock().unread.held()
}

/// Sends one byte per frame.
async fn drip(stream: &mut Stream, frames: usize) {
    for _ in 0..frames {
        stream.write_all(b"x").await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn short_frames_are_held_as_bytes_as_long_as_somebody_reads_a_little() {
    let mut pair = Pair::with(&strict()).await;
    let (mut near, mut far) = pair.open().await;
    for _ in 0..FRAMES / 100 {
        drip(&mut far, 100).await;
        near.read_exact(&mut [0]).await.unwrap();
    }
    assert!(held(&near) > FRAMES - FRAMES / 100 - 200, "{} bytes", held(&near));
    far.shutdown().await.unwrap();
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).await.unwrap();
    assert_eq!((rest.len(), held(&near)), (FRAMES - FRAMES / 100, 0));
}

#[tokio::test]
async fn short_frames_are_held_as_bytes_as_long_as_somebody_writes() {
    let mut pair = Pair::with(&strict()).await;
    let (mut near, mut far) = pair.open().await;
    for _ in 0..FRAMES / 100 {
        drip(&mut far, 100).await;
        near.write_all(b"y").await.unwrap();
    }
    let mut all = vec![0; FRAMES];
    near.read_exact(&mut all).await.unwrap();
}

/// A client that has stalled: the stream is read once, and then no more.
#[tokio::test]
async fn short_frames_are_held_as_bytes_when_nobody_does_anything() {
    let mut pair = Pair::with(&strict()).await;
    let (mut near, mut far) = pair.open().await;
    drip(&mut far, 1).await;
    near.read_exact(&mut [0]).await.unwrap();
    drip(&mut far, FRAMES).await;
    assert!(held(&near) > FRAMES - 200, "{} bytes", held(&near));
    let (mut other_near, mut other_far) = pair.open().await;
    drip(&mut other_far, 1).await;
    other_near.read_exact(&mut [0]).await.unwrap();
    far.shutdown().await.unwrap();
    let mut rest = Vec::new();
    near.read_to_end(&mut rest).await.unwrap();
    assert_eq!((rest.len(), held(&near)), (FRAMES, 0));
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_whoever_writes() {
    let mut pair = Pair::new().await;
    let (near, mut far) = pair.open().await;
    let (mut read, mut write) = split(near);
    let mut reading = tokio::spawn(async move { read.read_u8().await });
    assert!(futures_util::poll!(&mut reading).is_pending());
    tokio::task::yield_now().await;
    far.write_all(b"x").await.unwrap();
    // Also in the turn in which the byte arrives.
    for _ in 0..10 {
        write.write_all(b"y").await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(within(WAIT, "the byte", reading).await.unwrap().unwrap(), b'x');
}

/// Unread bytes have not given their window back: a peer has at most one window in flight or
/// unread.
#[tokio::test]
async fn what_is_held_is_a_window_at_most() {
    let settings = Settings { stream_window: 10_000, stream_window_max: 10_000, ..Settings::default() };
    let mut pair = Pair::with(&settings).await;
    let (mut near, mut far) = pair.open().await;
    let writing = tokio::spawn(async move {
        far.write_all(&vec![7; 30_000]).await.unwrap();
        far
    });
    let mut heard = 0;
    while heard < 30_000 {
        near.read_exact(&mut [0]).await.unwrap();
        assert!(held(&near) < 10_000, "{}", held(&near));
        heard += 1;
    }
    within(WAIT, "the writer", writing).await.unwrap();
}

#[tokio::test]
async fn short_frames_that_come_before_the_answer_are_held_as_bytes() {
    let (near, far) = duplex(1 << 20);
    let (answer, asked) = oneshot::channel::<()>();
    let (heard, told) = oneshot::channel();
    let parts = parking_lot::Mutex::new(Some((asked, heard)));
    let handler = move |mut incoming: crate::Incoming| {
        let (asked, heard) = parts.lock().take().expect("one request");
        async move {
            tokio::select! {
                () = incoming.cancelled() => return,
                _ = asked => {}
            }
            let mut stream = incoming.accept().unwrap();
            let mut early = Vec::new();
            stream.read_to_end(&mut early).await.unwrap();
            let _ = heard.send(early);
        }
    };
    tokio::spawn(async move { serve(far, &strict(), Serving::default(), handler).await });
    let (sender, connection) = h2::client::Builder::new().handshake::<_, Bytes>(near).await.unwrap();
    let driven = tokio::spawn(connection);
    let request = http::Request::connect(to("db:443").to_string()).body(()).unwrap();
    let (response, mut send) = sender.ready().await.unwrap().send_request(request, false).unwrap();
    for _ in 0..FRAMES {
        send.send_data(Bytes::from_static(b"x"), false).unwrap();
        tokio::task::yield_now().await;
    }
    send.send_data(Bytes::from_static(b"end"), true).unwrap();
    assert!(!driven.is_finished(), "ended for its short frames");
    answer.send(()).unwrap();
    assert_eq!(within(WAIT, "the answer", response).await.unwrap().status(), http::StatusCode::OK);
    let early = within(WAIT, "the bytes", told).await.unwrap();
    assert_eq!((early.len(), early.ends_with(b"xend")), (FRAMES + 3, true));
}

/// The ends of a stream, the nearer of which is observed.
async fn observed() -> (Pair, Stream, Stream, Arc<Observed>) {
    let mut pair = Pair::new().await;
    let (near, far) = pair.open().await;
    let told = Arc::<Observed>::default();
    (pair, near.observed_by(Arc::<Observed>::clone(&told)), far, told)
}

/// The link's driver reports, as in a gateway whose client has stalled.
#[tokio::test]
async fn what_nobody_reads_is_told_in_steps_and_so_is_its_end() {
    let (_pair, mut near, mut far, told) = observed().await;
    far.write_all(&vec![7; MUCH]).await.unwrap();
    eventually(WAIT, || told.last() > MUCH - STEP).await;
    assert!(told.0.lock().len() <= MUCH / STEP + 1, "{told:?}");
    near.read_exact(&mut vec![0; MUCH]).await.unwrap();
    assert_eq!(told.last(), 0, "all was read");
    far.write_all(&vec![7; MUCH]).await.unwrap();
    eventually(WAIT, || told.last() > MUCH - STEP).await;
    drop(near);
    assert_eq!(told.last(), 0, "nobody has it any more");
}

#[tokio::test]
async fn of_a_stream_whose_reader_keeps_up_nothing_is_told() {
    let (_pair, mut near, mut far, told) = observed().await;
    for _ in 0..1000 {
        far.write_all(&[7; 16 << 10]).await.unwrap();
        near.read_exact(&mut [0; 16 << 10]).await.unwrap();
    }
    assert!(told.0.lock().is_empty(), "{told:?}");
}

#[tokio::test]
async fn what_waits_for_a_peer_that_reads_nothing_is_observed_until_it_is_dropped() {
    const PIECE: usize = 4 << 10;
    /// Within the first window of HTTP/2.
    const PIECES: usize = 15;
    let (near, far) = duplex(1 << 10);
    let peer = async {
        let (mut frames, stream) = asked(far).await;
        frames.send_all(&encode(HEADERS, END_HEADERS, stream, STATUS_200)).await.unwrap();
        frames
    };
    let open = async {
        let link = Link::start(near, &Settings::default(), Hop::Agent).await.unwrap();
        let stream = link.open(&to("db:443"), None).await.unwrap();
        (link, stream)
    };
    let ((_link, stream), frames) = within(WAIT, "a stream", async { tokio::join!(open, peer) }).await;
    let observed = Arc::<Observed>::default();
    let mut stream = stream.observed_by(Arc::<Observed>::clone(&observed));
    for _ in 0..PIECES {
        stream.write_all(&[7; PIECE]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(observed.waiting(), PIECES * PIECE);
    drop(stream);
    // HTTP/2 is in the middle of one.
    eventually(WAIT, || observed.waiting() <= PIECE).await;
    drop(frames);
    eventually(WAIT, || observed.waiting() == 0).await;
}

/// HTTP/2 inside a stream does so when its far end reads nothing.
#[tokio::test]
async fn what_comes_for_a_reader_behind_a_writer_without_room_is_told() {
    let (_pair, near, mut far, told) = observed().await;
    let (mut read, mut write) = split(near);
    let mut all = vec![0; MUCH];
    let mut reading = std::pin::pin!(read.read_exact(&mut all));
    assert!(futures_util::poll!(&mut reading).is_pending());
    let piece = vec![7; 64 << 10];
    while unless_quiet(Duration::from_millis(100), write.write_all(&piece)).await.is_some() {}
    far.write_all(&vec![7; MUCH]).await.unwrap();
    eventually(WAIT, || told.last() > MUCH - STEP).await;
    within(WAIT, "the rest", reading).await.unwrap();
    assert_eq!(told.last(), 0);
}

#[tokio::test]
async fn a_reader_whose_peer_never_stops_sending_lets_others_have_their_turn() {
    const SENT: usize = 4096;
    let mut pair = Pair::new().await;
    let (mut near, mut far) = pair.open().await;
    far.write_all(&[0; SENT]).await.unwrap();
    near.read_exact(&mut [0]).await.unwrap();
    let read = poll_fn(|cx| {
        let (mut read, mut byte) = (0, [0]);
        while read < SENT && Pin::new(&mut near).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_ready() {
            read += 1;
        }
        Poll::Ready(read)
    });
    let read = read.await;
    assert!(read < SENT - 1, "it would have read as long as there is something");
    near.read_exact(&mut vec![0; SENT - 1 - read]).await.unwrap();
}
