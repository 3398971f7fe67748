//! The common part of watches of our resources: they respond at once, send line by line, and end
//! after a lifetime.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use api::status::Status;
use api::watch_event::EventWriter;
use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::{Method, Response};
use tokio::time::{Instant, timeout_at};

use super::ok;
use super::weight::Weight;
use crate::body::ResponseBody;
use crate::hub::{Line, Watching};
use crate::needs::RequestNeeds;

/// Watches without a timeout of their own last between this and twice as long, as in kube-apiserver
/// (`--min-request-timeout`).
const SHORTEST: Duration = Duration::from_mins(30);
/// Longest timeout that a watcher may set: each watch takes one of the permits for watches of the
/// hub.
const LONGEST: Duration = Duration::from_hours(1);
/// The hub ends a watch in time by itself. Otherwise the gateway ends it this much later.
pub const GRACE: Duration = Duration::from_secs(10);

/// The result of one of the hub's lines for the watcher.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Nothing,
    Send(Bytes),
    /// After this line the watch is over.
    Last(Bytes),
}

// === impl Step ===

impl Step {
    /// The line for the watcher; sets `over` after its last line.
    pub fn line(self, over: &mut bool) -> Option<Bytes> {
        match self {
            Self::Nothing => None,
            Self::Send(line) => Some(line),
            Self::Last(line) => {
                *over = true;
                Some(line)
            }
        }
    }
}

/// Translates the hub's lines into the watcher's.
pub trait Translate: Send + 'static {
    fn line(&mut self, line: &[u8]) -> Step;
}

/// A watch of the hub, translated for the watcher.
pub struct Flow<T> {
    watching: Watching,
    translator: T,
    until: Instant,
    over: bool,
    weight: Weight,
}

/// Lines that wait for the watcher.
pub struct Queued {
    lines: VecDeque<Bytes>,
    bytes: usize,
    /// Bytes that the watch keeps besides the lines.
    kept: usize,
    weight: Weight,
}

/// Lines for a watcher.
pub type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// A watch that produces lines until its end.
pub trait Watch: Sized + Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    fn stream(self) -> Events {
        Box::pin(unfold(self, |mut watch| async move { watch.next().await.map(|line| (line, watch)) }))
    }
}

/// The response to a watch.
pub fn response(gateway: &RequestNeeds, method: &Method, events: Events) -> Response<ResponseBody> {
    let body = match *method {
        // Its body would be the events.
        Method::HEAD => ResponseBody::empty(),
        _ => ResponseBody::stream(events).ending_with(gateway.drain.soft(), true),
    };
    ok(Bytes::new()).map(|_| body)
}

/// How long a watch lasts. Watches that begin together must not end together.
pub fn lifetime(wish: Option<i64>) -> Duration {
    let wish = wish.and_then(|seconds| u64::try_from(seconds).ok()).filter(|seconds| *seconds > 0);
    let random = || SHORTEST.mul_f64(1.0 + net::random::fraction());
    wish.map_or_else(random, |seconds| Duration::from_secs(seconds).min(LONGEST))
}

/// The last event when a line of the hub is too long to be parsed.
pub fn too_long() -> Bytes {
    EventWriter::error(&Status::internal_error("the hub sent a watch event that is too long"))
}

// === impl Flow ===

impl<T: Translate> Flow<T> {
    /// `weight` counts incomplete lines.
    pub fn new(watching: Watching, translator: T, lifetime: Duration, weight: Weight) -> Self {
        Self { watching, translator, until: Instant::now() + lifetime + GRACE, over: false, weight }
    }
}

impl<T: Translate> Watch for Flow<T> {
    async fn next(&mut self) -> Option<Bytes> {
        while !self.over {
            self.weight.set(self.watching.lines.held());
            let step = match timeout_at(self.until, self.watching.lines.next()).await {
                Ok(Line::Whole(line)) => self.translator.line(&line),
                Ok(Line::TooLong) => Step::Last(too_long()),
                Ok(Line::End) | Err(_) => return None,
            };
            if let Some(line) = step.line(&mut self.over) {
                return Some(line);
            }
        }
        None
    }
}

// === impl Queued ===

impl Queued {
    pub fn new(weight: Weight) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, kept: 0, weight }
    }

    pub fn push(&mut self, line: Bytes) {
        self.bytes += line.len();
        self.weigh();
        self.lines.push_back(line);
    }

    pub fn pop(&mut self) -> Option<Bytes> {
        let line = self.lines.pop_front()?;
        self.bytes -= line.len();
        self.weigh();
        Some(line)
    }

    /// Sets the bytes kept besides the lines.
    pub fn keep(&mut self, bytes: usize) {
        self.kept = bytes;
        self.weigh();
    }

    fn weigh(&mut self) {
        self.weight.set(self.bytes + self.kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_last_as_long_as_wished_within_reason() {
        assert_eq!(lifetime(Some(5)), Duration::from_secs(5));
        assert_eq!(lifetime(Some(i64::MAX)), LONGEST);
        for no_wish in [None, Some(0), Some(-1)] {
            let lifetime = lifetime(no_wish);
            assert!((SHORTEST..2 * SHORTEST).contains(&lifetime), "{lifetime:?}");
        }
    }
}
