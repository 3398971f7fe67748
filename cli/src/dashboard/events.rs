//! Streams of changes (`text/event-stream`, <https://html.spec.whatwg.org/#server-sent-events>).
//!
//! A stream remembers what its page shows, and sends the difference to what is known now. A reader
//! that is slow, or away for a while, gets one difference and not its history.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use api::cluster_name::ClusterName;
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until};

use super::Dashboard;
use super::board::{Patch, Snapshot};
use super::html::Html;
use super::inspection::{Inspection, inspect};
use super::one::{ClusterDetails, Parts};
use super::overview::{patch, whole};
use super::response::{Body, of_type, text};

/// A stream is never silent for longer, apart from the time that a look takes. So each end notices
/// when the other is gone.
const BEAT: Duration = Duration::from_secs(15);
/// A comment, which browsers ignore.
const SILENCE: &str = ":\n\n";

/// Changes of all clusters since the snapshot `version`.
pub fn of_all(dashboard: &Arc<Dashboard>, version: u64) -> Response<Body> {
    let Some(permit) = permit(dashboard) else { return full() };
    let known = dashboard.board.past(version);
    let reader = All { newest: dashboard.board.subscribe(), known, _permit: permit };
    let seal = seal(dashboard);
    let events = stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((event, reader))
    });
    streaming(seal, events)
}

/// Changes of one cluster's page.
pub fn of_one(dashboard: &Arc<Dashboard>, name: ClusterName) -> Response<Body> {
    let Some(permit) = permit(dashboard) else { return full() };
    let (newest, seal) = (dashboard.board.subscribe(), seal(dashboard));
    let dashboard = Arc::clone(dashboard);
    // What a page shows after a reconnect is unknown, so everything is sent once.
    let reader = One { dashboard, name, newest, sent: Parts::new(), due: Instant::now(), _permit: permit };
    let events = stream::unfold(reader, |mut reader| async move { Some((Box::pin(reader.next()).await, reader)) });
    streaming(seal, events)
}

/// The stream of a page with all clusters.
struct All {
    newest: watch::Receiver<Arc<Snapshot>>,
    /// What the page shows. `None`: its snapshot is no longer kept, for example because its
    /// connection was broken for a while.
    known: Option<Arc<Snapshot>>,
    _permit: OwnedSemaphorePermit,
}

/// The stream of a cluster's page.
struct One {
    dashboard: Arc<Dashboard>,
    name: ClusterName,
    newest: watch::Receiver<Arc<Snapshot>>,
    sent: Parts,
    due: Instant,
    _permit: OwnedSemaphorePermit,
}

// === impl All ===

impl All {
    async fn next(&mut self) -> Option<String> {
        let beat = Instant::now() + BEAT;
        loop {
            let newest = Arc::clone(&self.newest.borrow_and_update());
            let patch = match &self.known {
                Some(known) => patch(known, &newest),
                None => whole(&newest),
            };
            self.known = Some(newest);
            if !patch.is_empty() {
                return Some(event(&patch));
            }
            tokio::select! {
                changed = self.newest.changed() => changed.ok()?,
                () = sleep_until(beat) => return Some(SILENCE.to_owned()),
            }
        }
    }
}

// === impl One ===

impl One {
    /// Looks at the cluster when it is due, and returns what has changed, or [`SILENCE`] if nothing
    /// has.
    async fn next(&mut self) -> String {
        let beat = Instant::now() + BEAT;
        sleep_until(self.due.min(beat)).await;
        if Instant::now() < self.due {
            return SILENCE.to_owned();
        }
        let snapshot = Arc::clone(&self.newest.borrow_and_update());
        let is_tunnelled = snapshot.clusters.get(self.name.as_str()).is_some_and(|cells| cells.is_tunnelled);
        let seen = Box::pin(inspect(&self.dashboard.session, &self.name, is_tunnelled)).await;
        self.due = Instant::now() + self.dashboard.interval;
        let parts = self.keep(&snapshot, &seen);
        let changed: Parts = parts.iter().filter(|(id, part)| self.sent.get(*id) != Some(*part)).map(pair).collect();
        self.sent = parts;
        if changed.is_empty() { SILENCE.to_owned() } else { event(&Patch { parts: changed, ..Patch::default() }) }
    }

    /// Remembers what was seen for the page that opens next.
    fn keep(&self, snapshot: &Snapshot, seen: &Inspection) -> Parts {
        self.dashboard.page(&self.name, |page| {
            if let Ok(traffic) = &seen.traffic {
                page.history.add(traffic.clone(), Instant::now(), self.dashboard.interval);
            }
            let known = ClusterDetails { name: &self.name, snapshot, inspection: Some(seen), history: &page.history };
            page.parts = known.parts();
            page.parts.clone()
        })
    }
}

fn pair((id, part): (&&'static str, &Html)) -> (&'static str, Html) {
    (id, part.clone())
}

/// An event in one line: this JSON contains no line ends.
fn event(patch: &Patch) -> String {
    let json = serde_json::to_string(patch).unwrap_or_default();
    format!("data: {json}\n\n")
}

/// The first event of a stream, by which a page recognizes its own program.
fn seal(dashboard: &Dashboard) -> String {
    format!("data: {{\"seal\":\"{}\"}}\n\n", dashboard.door.seal())
}

fn streaming(seal: String, events: impl Stream<Item = String> + Send + 'static) -> Response<Body> {
    use futures_util::StreamExt as _;
    let frames = stream::iter([seal]).chain(events).map(|event| Ok::<_, Infallible>(Frame::data(Bytes::from(event))));
    of_type("text/event-stream", StreamBody::new(frames).boxed_unsync())
}

fn permit(dashboard: &Dashboard) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&dashboard.streams).try_acquire_owned().ok()
}

fn full() -> Response<Body> {
    text(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open: close some.")
}
