//! The connections to a member are shared by all users. Go's HTTP/2 server goes on with a request
//! that was reset until its handler has noticed, queues what is beyond its stream limit meanwhile,
//! and ends the *connection* when four times as many are queued (`serverConn.scheduleHandler`,
//! since CVE-2023-44487). No user's cancellations may lead there.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use system_tests::Streamed;
use system_tests::frames::{
    DATA, END_HEADERS, END_STREAM, FrameMember, GOAWAY, HEADERS, MemberFrames, RST_STREAM, STATUS_200, encode,
};
use system_tests::prelude::*;
use tokio::sync::Notify;

/// Streams the member allows on a connection.
const STREAMS: usize = 10;
const ENHANCE_YOUR_CALM: [u8; 8] = [0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 11];
/// Cancelled in all: as many as end the connection of a gateway that resets and forgets, many times
/// over.
const WAVES: usize = 20;
const WAVE: usize = 30;

/// Counts over all connections of the member.
#[derive(Default)]
struct Seen {
    requests: AtomicUsize,
    connections: AtomicUsize,
    goodbyes: AtomicUsize,
    settled: AtomicUsize,
    event: Notify,
    answer: Notify,
}

/// A connection of Go's server, with handlers that notice nothing: the worst there can be.
struct Go {
    frames: MemberFrames,
    seen: Arc<Seen>,
    running: HashSet<u32>,
    queued: VecDeque<u32>,
    reset: HashSet<u32>,
    /// The first stream of the first connection.
    watch: Option<u32>,
}

// === impl Go ===

impl Go {
    async fn serve(mut self, number: usize) -> io::Result<()> {
        self.seen.connections.fetch_add(1, Ordering::SeqCst);
        let seen = Arc::clone(&self.seen);
        loop {
            tokio::select! {
                frame = self.frames.read() => {
                    let frame = frame?;
                    match frame.kind {
                        HEADERS if number == 0 && self.watch.is_none() => {
                            self.watch = Some(frame.stream);
                            self.running.insert(frame.stream);
                            self.frames.send(HEADERS, END_HEADERS, frame.stream, STATUS_200).await?;
                        }
                        HEADERS => self.schedule(frame.stream).await?,
                        RST_STREAM => drop(self.reset.insert(frame.stream)),
                        _ => {}
                    }
                }
                () = seen.event.notified(), if self.watch.is_some() => {
                    self.frames.send(DATA, 0, self.watch.expect("just seen"), b"event\n").await?;
                }
                () = seen.answer.notified() => self.answer().await?,
            }
        }
    }

    /// `serverConn.scheduleHandler`.
    async fn schedule(&mut self, stream: u32) -> io::Result<()> {
        self.seen.requests.fetch_add(1, Ordering::SeqCst);
        if self.running.len() < STREAMS {
            self.running.insert(stream);
        } else if self.queued.len() > 4 * STREAMS {
            self.seen.goodbyes.fetch_add(1, Ordering::SeqCst);
            self.frames.send(GOAWAY, 0, 0, &ENHANCE_YOUR_CALM).await?;
            return Err(io::Error::other("too_many_early_resets"));
        } else {
            self.queued.push_back(stream);
        }
        Ok(())
    }

    /// Answers when all handlers have ended, those of the queue as well.
    async fn answer(&mut self) -> io::Result<()> {
        let watch = self.watch;
        let ended: Vec<_> = self.running.drain().chain(self.queued.drain(..)).collect();
        for stream in ended {
            if Some(stream) == watch {
                self.running.insert(stream);
            } else if !self.reset.remove(&stream) {
                self.frames.send_all(&encode(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200)).await?;
            }
        }
        self.frames.settled().await?;
        self.seen.settled.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

struct Fixture {
    seen: Arc<Seen>,
    testbed: Testbed,
    connection: Connection,
    watch: Streamed<'static>,
    _member: FrameMember,
}

// === impl Fixture ===

impl Fixture {
    async fn set() -> Self {
        let seen = Arc::<Seen>::default();
        let shared = Arc::clone(&seen);
        let script = move |number, frames| {
            let seen = Arc::clone(&shared);
            let (running, queued, reset) = (HashSet::new(), VecDeque::new(), HashSet::new());
            Go { frames, seen, running, queued, reset, watch: None }.serve(number)
        };
        let member = FrameMember::limited(STREAMS.try_into().expect("few"), script).await;
        let testbed = Testbed::with(&member).await;
        let connection = testbed.connect(Http::H2).await;
        let watch = connection.open_beside("GET", &proxied(CLUSTER, "/watch?watch=1")).await.expect("a head");
        Self { seen, testbed, connection, watch, _member: member }
    }

    /// Sends requests and takes them back when the member has them.
    async fn wave(&self, method: &Method) {
        let bearer = format!("Bearer {ADMIN}");
        let (headers, before) = ([("authorization", &*bearer)], self.requests());
        let (target, ends) = (proxied(CLUSTER, "/x"), *method == Method::GET);
        let mut wave = Vec::new();
        for _ in 0..WAVE {
            let sent = self.connection.h2().send(method.clone(), &target, &headers, ends).await;
            wave.push(sent.expect("an open connection"));
        }
        eventually(WAIT, || self.requests() == before + WAVE || self.goodbyes() > 0).await;
        assert_eq!(self.goodbyes(), 0, "a connection was ended for all its users");
        drop(wave);
        // The gateway has seen the resets when it answers a request after them.
        assert_eq!(self.testbed.get("/version").await.status, 200);
        self.connection.h2().get("/version", &headers).await.expect("an open connection");
    }

    fn requests(&self) -> usize {
        self.seen.requests.load(Ordering::SeqCst)
    }

    fn goodbyes(&self) -> usize {
        self.seen.goodbyes.load(Ordering::SeqCst)
    }

    async fn assert_watch_goes_on(&mut self) {
        assert_eq!(self.goodbyes(), 0, "a connection was ended for all its users");
        self.seen.event.notify_one();
        assert_eq!(self.watch.event().await, "event\n");
    }
}

async fn waves(method: Method) -> Fixture {
    let mut fixture = Fixture::set().await;
    for _ in 0..WAVES {
        fixture.wave(&method).await;
    }
    fixture.assert_watch_goes_on().await;
    fixture
}

#[tokio::test]
async fn cancelled_requests_do_not_end_the_streams_of_others() {
    waves(Method::GET).await;
}

#[tokio::test]
async fn cancelled_uploads_do_not_end_the_streams_of_others() {
    waves(Method::POST).await;
}

/// A cancelled request takes a place until the member has answered it, and no longer.
#[tokio::test]
async fn the_places_of_cancelled_requests_come_back_with_their_answers() {
    let mut fixture = waves(Method::GET).await;
    let connections = || fixture.seen.connections.load(Ordering::SeqCst);
    let opened = connections();
    assert!(opened > 1, "some of them still count at the first");
    fixture.seen.answer.notify_waiters();
    eventually(WAIT, || fixture.seen.settled.load(Ordering::SeqCst) == opened).await;
    assert_eq!(fixture.testbed.get("/version").await.status, 200);
    // All places of all those connections.
    let (target, bearer) = (proxied(CLUSTER, "/x"), format!("Bearer {ADMIN}"));
    let headers = [("authorization", bearer.as_str())];
    let before = fixture.requests();
    let mut open = Vec::new();
    for _ in 0..100 {
        let sent = fixture.connection.h2().send(Method::GET, &target, &headers, true).await;
        open.push(sent.expect("an open connection"));
    }
    eventually(WAIT, || fixture.requests() == before + open.len()).await;
    assert_eq!(connections(), opened);
    fixture.assert_watch_goes_on().await;
}
