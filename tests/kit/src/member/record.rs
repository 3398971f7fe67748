//! The member's record of each request: the head as received, the read part of the body, and the
//! end.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, Method, Version};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::server::{Connection, Peer};
use crate::wait::Signal;

/// Requests remembered, unless a test says otherwise.
pub(super) const REMEMBERED: usize = 16 << 10;
/// Bytes of one request body kept; further bytes are read and counted only.
const MAX_BODY_KEPT: usize = 8 << 20;

/// One request as the member saw it. Clones share what becomes known later: body and ending.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Counted from 0 in order of arrival.
    pub number: usize,
    /// The connection it came on, counted from 0 in order of acceptance.
    pub connection: usize,
    /// HTTP version of that connection.
    pub version: Version,
    /// The method.
    pub method: Method,
    /// Path and query, byte for byte as received.
    pub target: String,
    /// `:authority`, or `Host` on HTTP/1.1.
    pub authority: Option<String>,
    /// The header lines. Lines of one name keep their order; names come in the order of their first
    /// line.
    pub headers: HeaderMap,
    /// The client certificate of the connection.
    pub peer: Option<Peer>,
    /// When the head was complete.
    pub at: Instant,
    progress: Arc<Mutex<Progress>>,
    log: Arc<Signal>,
}

/// How a request body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// With its proper end.
    Complete,
    /// Cut off: reset, or closed before the announced end.
    Broken,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The whole answer was handed to the connection.
    Completed,
    /// The caller reset the stream or closed the connection before that.
    Cancelled,
    /// The script ended the answer without its proper end.
    Aborted,
}

#[derive(Debug, Default)]
struct Progress {
    body: BytesMut,
    body_bytes: u64,
    body_end: Option<BodyEnd>,
    trailers: Option<HeaderMap>,
    ending: Option<(Ending, Instant)>,
}

/// Everything one member recorded.
#[derive(Debug)]
pub(super) struct Log {
    most: usize,
    entries: Mutex<Entries>,
    signal: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Entries {
    recorded: VecDeque<Recorded>,
    count: usize,
    /// Number of the request `next_recorded` returns next.
    next: usize,
    cancelled: VecDeque<Recorded>,
}

/// One exchange in progress; dropped without an ending it counts as cancelled.
#[derive(Debug)]
pub(super) struct Exchange {
    request: Recorded,
    log: Arc<Log>,
}

// === impl Recorded ===

impl Recorded {
    /// The path, without the query, byte for byte.
    pub fn path(&self) -> &str {
        self.target.split_once('?').map_or(self.target.as_str(), |(path, _)| path)
    }

    /// The query, byte for byte, if there was a `?`.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// The first value of a header, if there is one and it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
    }

    /// All values of a header in order, bytes that are not UTF-8 replaced.
    pub fn header_values(&self, name: &str) -> Vec<String> {
        self.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    }

    /// The part of the body that the script read so far (at most 8 MiB are kept).
    pub fn body(&self) -> Bytes {
        self.progress.lock().body.clone().freeze()
    }

    /// Number of body bytes that the script read so far.
    pub fn body_bytes(&self) -> u64 {
        self.progress.lock().body_bytes
    }

    /// The trailers after the body, once read.
    pub fn trailers(&self) -> Option<HeaderMap> {
        self.progress.lock().trailers.clone()
    }

    /// Waits until the script read the body to its end, and says which end.
    pub async fn body_ended(&self) -> BodyEnd {
        self.log.until(format_args!("the end of the body of {}", self.target), || self.progress.lock().body_end).await
    }

    /// Waits until at least `bytes` of the body were read.
    pub async fn body_reached(&self, bytes: u64) {
        let reached = || (self.body_bytes() >= bytes).then_some(());
        self.log.until(format_args!("{bytes} body bytes of {}", self.target), reached).await;
    }

    /// How it ended, if it did.
    pub fn ending(&self) -> Option<Ending> {
        self.progress.lock().ending.map(|(ending, _)| ending)
    }

    /// Waits until it ended, and says how and when.
    pub async fn ended(&self) -> (Ending, Instant) {
        self.log.until(format_args!("the end of {}", self.target), || self.progress.lock().ending).await
    }

    pub(super) fn push_body(&self, data: &[u8]) {
        let mut progress = self.progress.lock();
        let room = MAX_BODY_KEPT.saturating_sub(progress.body.len());
        progress.body.extend_from_slice(&data[..data.len().min(room)]);
        progress.body_bytes += data.len() as u64;
        drop(progress);
        self.log.notify();
    }

    pub(super) fn push_trailers(&self, trailers: &HeaderMap) {
        self.progress.lock().trailers = Some(trailers.clone());
    }

    pub(super) fn end_body(&self, end: BodyEnd) {
        self.progress.lock().body_end.get_or_insert(end);
        self.log.notify();
    }
}

// === impl Log ===

impl Log {
    /// A record of at most so many requests.
    pub(super) fn of(most: usize) -> Self {
        Self { most, entries: Mutex::default(), signal: Arc::default() }
    }

    pub(super) fn record(&self, parts: Parts, connection: &Connection) -> Recorded {
        let mut entries = self.entries.lock();
        let host =
            || parts.headers.get(http::header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        let recorded = Recorded {
            number: entries.count,
            connection: connection.number,
            version: parts.version,
            target: parts.uri.path_and_query().map_or_else(|| parts.uri.to_string(), ToString::to_string),
            authority: parts.uri.authority().map(ToString::to_string).or_else(host),
            method: parts.method,
            headers: parts.headers,
            peer: connection.peer.clone(),
            at: Instant::now(),
            progress: Arc::default(),
            log: self.signal.clone(),
        };
        entries.count += 1;
        entries.recorded.push_back(recorded.clone());
        if entries.recorded.len() > self.most {
            entries.recorded.pop_front();
        }
        drop(entries);
        self.signal.notify();
        recorded
    }

    pub(super) fn recorded(&self) -> Vec<Recorded> {
        self.entries.lock().recorded.iter().cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.entries.lock().count
    }

    pub(super) async fn next_recorded(&self) -> Recorded {
        let next = || {
            let mut entries = self.entries.lock();
            let next = entries.next;
            let found = entries.recorded.iter().find(|recorded| recorded.number >= next).cloned()?;
            entries.next = found.number + 1;
            Some(found)
        };
        self.signal.until("a request to the member", next).await
    }

    pub(super) async fn next_cancelled(&self) -> Recorded {
        self.signal.until("a cancelled request at the member", || self.entries.lock().cancelled.pop_front()).await
    }

    fn end(&self, request: &Recorded, ending: Ending) {
        let mut progress = request.progress.lock();
        if progress.ending.is_none() {
            progress.ending = Some((ending, Instant::now()));
            drop(progress);
            if ending == Ending::Cancelled {
                let mut entries = self.entries.lock();
                entries.cancelled.push_back(request.clone());
                if entries.cancelled.len() > self.most {
                    entries.cancelled.pop_front();
                }
            }
            self.signal.notify();
        }
    }
}

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(request: Recorded, log: Arc<Log>) -> Self {
        Self { request, log }
    }

    pub(super) fn request(&self) -> &Recorded {
        &self.request
    }

    pub(super) fn end(&self, ending: Ending) {
        self.log.end(&self.request, ending);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.end(Ending::Cancelled);
    }
}
