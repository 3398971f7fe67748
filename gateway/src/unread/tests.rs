use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;

use h2::SendStream;
use http::{Request, Response};
use kit::wait::{WAIT, within};
use tokio::io::duplex;

use super::*;
use crate::holding::Budget;
use crate::inbound::{Inbound, Marks};

/// The reading end of a body, and its member's sending end.
struct Pair {
    reader: Source,
    collector: Arc<Collector>,
    sender: SendStream<Bytes>,
    /// Without it the connection would end with its last stream.
    requests: h2::client::SendRequest<Bytes>,
    /// Polled by the test, like the collector: a turn is one poll.
    driver: Collecting<h2::client::Connection<Inbound<tokio::io::DuplexStream>, Bytes>>,
}

/// Counts wake-ups.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

// === impl Pair ===

impl Pair {
    async fn new() -> Self {
        Self::counted(None).await
    }

    async fn counted(account: Option<&Account>) -> Self {
        let (ours, theirs) = duplex(1 << 20);
        let collector = Arc::<Collector>::default();
        let ours = Inbound::of_member(ours, Marks::default()).attended_by(Arc::clone(&collector));
        let member = tokio::spawn(async move {
            let mut connection = h2::server::handshake(theirs).await.unwrap();
            let (_, mut respond) = connection.accept().await.unwrap().unwrap();
            let sender = respond.send_response(Response::new(()), false).unwrap();
            tokio::spawn(async move { while connection.accept().await.is_some() {} });
            sender
        });
        let (mut requests, driver) =
            h2::client::Builder::new().data_frame_budget(200 * 255).handshake::<_, Bytes>(ours).await.unwrap();
        let mut driver = Collecting::new(driver, Arc::clone(&collector));
        let request = Request::get("https://member/").body(()).unwrap();
        let (response, _) = requests.send_request(request, true).unwrap();
        let answer = tokio::select! {
            answer = within(WAIT, "a head", response) => answer.unwrap(),
            _ = &mut driver => panic!("the connection ended"),
        };
        let stream = answer.into_body();
        let reader = Source::new(stream, &collector, account);
        Self { reader, collector, sender: member.await.unwrap(), requests, driver }
    }

    /// Makes the member send this many bytes, one per frame, and receives them.
    async fn drip(&mut self, bytes: usize) {
        for _ in 0..bytes {
            self.sender.send_data(Bytes::from_static(b"x"), false).unwrap();
            self.turn().await;
        }
    }

    /// One turn of the member, and one of ours.
    async fn turn(&mut self) {
        tokio::task::yield_now().await;
        let end = poll_fn(|cx| Poll::Ready(Pin::new(&mut self.driver).poll(cx))).await;
        assert!(end.is_pending(), "the connection ended: {end:?}");
    }

    fn poll(&mut self, count: &Arc<Count>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        self.reader.poll_data(&mut Context::from_waker(&Waker::from(Arc::clone(count))))
    }

    fn held(&self) -> usize {
        let Source::Long(reader) = &self.reader else { panic!("a whole one") };
        reader.unread.kept.lock().as_ref().unwrap().held()
    }

    fn is_listed(&self) -> bool {
        !self.collector.listed.lock().as_ref().unwrap().is_empty()
    }

    /// Reads all that is available.
    fn read(&mut self, count: &Arc<Count>) -> usize {
        let mut read = 0;
        while let Poll::Ready(Some(piece)) = self.poll(count) {
            read += piece.unwrap().len();
        }
        read
    }
}

fn woken(count: &Count) -> usize {
    count.0.load(Ordering::SeqCst)
}

#[tokio::test]
async fn frames_that_nobody_reads_are_joined() {
    let (mut pair, count) = (Pair::new().await, Arc::default());
    pair.drip(1000).await;
    pair.turn().await;
    pair.turn().await;
    assert_eq!(pair.held(), 1000);
    assert!(!pair.reader.is_end_stream());
    assert_eq!(pair.read(&count), 1000);
    assert_eq!(pair.held(), 0);
}

#[tokio::test]
async fn a_reader_that_reads_a_frame_a_turn_does_not_keep_the_others_in_h2() {
    let (mut pair, count) = (Pair::new().await, Arc::default());
    let mut read = 0;
    for _ in 0..100 {
        pair.drip(10).await;
        if let Poll::Ready(Some(piece)) = pair.poll(&count) {
            read += piece.unwrap().len();
        }
    }
    pair.turn().await;
    pair.turn().await;
    assert_eq!(read + pair.held(), 1000);
}

#[tokio::test]
async fn a_reader_that_waits_is_woken_and_reads_past_the_queue() {
    let (mut pair, count) = (Pair::new().await, Arc::default());
    for turn in 1..10 {
        assert!(pair.poll(&count).is_pending());
        pair.drip(1).await;
        pair.turn().await;
        while woken(&count) < turn {
            pair.turn().await;
        }
        // The reader is late by a turn or more.
        assert!(matches!(pair.poll(&count), Poll::Ready(Some(Ok(_)))));
        assert_eq!(woken(&count), turn, "once an event");
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_after_its_frames_were_taken_is_woken_by_the_next() {
    let (mut pair, count) = (Pair::new().await, Arc::default());
    assert!(pair.poll(&count).is_pending());
    pair.drip(50).await;
    pair.turn().await;
    pair.turn().await;
    assert_eq!(woken(&count), 1);
    assert_eq!(pair.read(&count), 50, "and then nothing, so that it waits again");
    pair.drip(1).await;
    pair.turn().await;
    assert_eq!(woken(&count), 2);
    assert_eq!(pair.read(&count), 1);
}

/// Three windows, in pieces that are shorter than a step.
#[tokio::test]
async fn the_window_of_short_pieces_is_given_back() {
    const PIECE: usize = 1000;
    const PIECES: usize = 200;
    let (mut pair, count) = (Pair::new().await, Arc::default());
    for _ in 0..PIECES {
        pair.sender.send_data(Bytes::from(vec![0; PIECE]), false).unwrap();
    }
    let mut read = 0;
    for _ in 0..PIECES {
        pair.turn().await;
        read += pair.read(&count);
    }
    assert_eq!(read, PIECES * PIECE);
}

/// Woken, but it has not run when its stream is collected.
#[tokio::test]
async fn a_reader_that_waits_is_told_of_the_end() {
    for end in ["plain", "trailers", "reset"] {
        let (mut pair, count) = (Pair::new().await, Arc::default());
        assert!(pair.poll(&count).is_pending());
        pair.drip(5).await;
        assert_eq!(pair.read(&count), 5);
        let before = woken(&count);
        match end {
            "plain" => pair.sender.send_data(Bytes::new(), true).unwrap(),
            "trailers" => {
                pair.sender.send_trailers(HeaderMap::from_iter([(http::header::ETAG, "x".parse().unwrap())])).unwrap();
            }
            _ => pair.sender.send_reset(h2::Reason::INTERNAL_ERROR),
        }
        for _ in 0..3 {
            pair.turn().await;
        }
        assert_eq!(woken(&count), before + 1, "{end}");
        let polled = loop {
            match pair.poll(&count) {
                Poll::Ready(Some(Ok(empty))) if empty.is_empty() => {}
                polled => break polled,
            }
        };
        if end == "reset" {
            assert!(matches!(polled, Poll::Ready(Some(Err(_)))), "{polled:?}");
            continue;
        }
        assert!(matches!(polled, Poll::Ready(None)), "{polled:?}");
        let trailers = poll_fn(|cx| pair.reader.poll_trailers(cx)).await.unwrap();
        assert_eq!(trailers.is_some(), end == "trailers");
        assert!(pair.reader.is_end_stream());
    }
}

#[tokio::test]
async fn a_stream_without_events_is_on_no_list() {
    let (mut pair, count) = (Pair::new().await, Arc::default());
    assert!(pair.is_listed(), "until somebody has looked");
    assert!(pair.poll(&count).is_pending());
    pair.turn().await;
    assert!(!pair.is_listed());
    pair.drip(1).await;
    pair.turn().await;
    pair.turn().await;
    assert!(!pair.is_listed(), "taken");
}

#[tokio::test]
async fn a_reader_that_leaves_takes_everything_along() {
    let mut pair = Pair::new().await;
    pair.drip(100).await;
    let Source::Long(reader) = &pair.reader else { panic!("a whole one") };
    let unread = Arc::clone(&reader.unread);
    let Pair { reader, mut sender, requests, mut driver, collector } = pair;
    drop(reader);
    assert!(unread.kept.lock().is_none());
    let reset = within(WAIT, "the reset", async {
        tokio::select! {
            reset = poll_fn(|cx| sender.poll_reset(cx)) => reset,
            _ = &mut driver => panic!("the connection ended"),
        }
    });
    assert_eq!(reset.await.unwrap(), h2::Reason::CANCEL);
    drop((driver, requests));
    assert!(collector.listed.lock().is_none());
    assert_eq!(Arc::strong_count(&unread), 1);
}

#[tokio::test]
async fn many_short_frames_have_another_turn_follow_at_once() {
    for (frames, wakes) in [(10, 0), (100, 1)] {
        let (mut pair, count) = (Pair::new().await, Arc::<Count>::default());
        pair.turn().await;
        for _ in 0..frames {
            pair.sender.send_data(Bytes::from_static(b"x"), false).unwrap();
        }
        tokio::task::yield_now().await;
        let waker = Waker::from(Arc::clone(&count));
        assert!(Pin::new(&mut pair.driver).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!((pair.held(), woken(&count)), (0, wakes), "{frames} frames");
        pair.turn().await;
        assert_eq!(pair.held(), frames);
    }
}

#[tokio::test]
async fn trailers_that_nobody_reads_count_and_come() {
    let budget = Budget::new(1 << 30);
    let account = holding::open(&budget, 0, [10, 0, 0, 1].into());
    let before = budget.held();
    let (mut pair, count) = (Pair::counted(Some(&account)).await, Arc::default());
    pair.drip(3).await;
    let trailers = HeaderMap::from_iter([("x-large".parse().unwrap(), "x".repeat(9000).parse().unwrap())]);
    pair.sender.send_trailers(trailers.clone()).unwrap();
    pair.turn().await;
    pair.turn().await;
    assert!(budget.held() - before > 9000);
    assert_eq!(pair.read(&count), 3);
    assert!(!pair.reader.is_end_stream());
    let read = poll_fn(|cx| pair.reader.poll_trailers(cx)).await.unwrap();
    assert_eq!(read, Some(trailers));
    assert!(pair.reader.is_end_stream());
    assert_eq!(budget.held(), before);
}

/// Each of thousands of idle watches has one, beside h2's own state.
#[test]
fn an_idle_stream_takes_little_memory() {
    assert!(size_of::<Unread>() <= 96, "{} bytes", size_of::<Unread>());
}
