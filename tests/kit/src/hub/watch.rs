//! Watches: the existing objects, then every change, bookmarks, and the ways a watch ends.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Frame;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::query::Query;
use super::resource::Resource;
use super::store::{Change, Store};
use crate::server::Aborted;
use crate::status::status;
use crate::wait::{Gate, Signal};

/// Lines of one watch that may wait for the caller to read them.
const LINES: usize = 64;
/// Marks the bookmark after the initial events (KEP-3157).
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// The open watches, and the orders all of them obey.
#[derive(Debug)]
pub(super) struct Watches {
    open: Arc<Mutex<HashMap<Resource, usize>>>,
    signal: Arc<Signal>,
    orders: watch::Sender<Orders>,
    /// Gates for which changes of a resource wait.
    gates: Mutex<HashMap<Resource, Gate>>,
}

/// How often each order was given; a watch obeys those given since it began.
#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// Watches of these end, one entry for each order.
    pub(super) ended: Vec<Resource>,
    pub(super) bookmarks: usize,
    pub(super) ends: usize,
    pub(super) aborts: usize,
}

/// One watch.
pub(super) struct Watch {
    resource: Resource,
    query: Query,
    store: Arc<Store>,
    lines: mpsc::Sender<Line>,
    orders: watch::Receiver<Orders>,
    since: Orders,
    /// The version up to which everything was sent.
    position: u64,
    watches: Arc<Watches>,
}

type Line = Result<Bytes, Aborted>;

/// The body of a watch.
#[derive(Debug)]
pub(super) struct WatchBody(mpsc::Receiver<Line>);

/// The watch ends.
struct Over;

/// Counts one watch as open.
struct Open(Resource, Arc<Watches>);

// === impl Watches ===

impl Watches {
    pub(super) fn new() -> Self {
        Self { open: Arc::default(), signal: Arc::default(), orders: watch::Sender::default(), gates: Mutex::default() }
    }

    pub(super) fn order(&self, order: impl FnOnce(&mut Orders)) {
        self.orders.send_modify(order);
    }

    pub(super) fn hold(&self, resource: Resource, gate: Gate) {
        self.gates.lock().insert(resource, gate);
    }

    async fn passed(&self, resource: Resource) {
        let gate = self.gates.lock().get(&resource).cloned();
        if let Some(gate) = gate {
            gate.passed().await;
        }
    }

    pub(super) async fn reached(&self, resource: Resource, count: usize) {
        let reached = || (self.open.lock().get(&resource).copied().unwrap_or_default() == count).then_some(());
        self.signal.until(format_args!("{count} watches of {resource:?}"), reached).await;
    }

    fn count(&self, resource: Resource, change: isize) {
        let mut open = self.open.lock();
        let count = open.entry(resource).or_default();
        *count = count.saturating_add_signed(change);
        drop(open);
        self.signal.notify();
    }
}

// === impl Watch ===

impl Watch {
    pub(super) fn new(resource: Resource, query: Query, store: Arc<Store>, watches: Arc<Watches>) -> (Self, WatchBody) {
        let (lines, receiver) = mpsc::channel(LINES);
        let orders = watches.orders.subscribe();
        let since = orders.borrow().clone();
        (Self { resource, query, store, lines, orders, since, position: 0, watches }, WatchBody(receiver))
    }

    /// Runs until the caller leaves, the timeout passes, or an order ends it.
    pub(super) async fn run(mut self) {
        let deadline = Instant::now() + self.query.timeout;
        let lines = self.lines.clone();
        tokio::select! {
            () = lines.closed() => {},
            () = tokio::time::sleep_until(deadline) => {},
            _ = self.send_all() => {},
        }
    }

    async fn send_all(&mut self) -> Result<(), Over> {
        let mut versions = self.store.versions();
        self.begin().await?;
        let _open = Open::new(self.resource, self.watches.clone());
        loop {
            versions.borrow_and_update();
            self.changes().await?;
            tokio::select! {
                _ = versions.changed() => {},
                _ = self.orders.changed() => self.obey().await?,
            }
        }
    }

    /// Sends the existing objects, if the caller's version asks for that.
    async fn begin(&mut self) -> Result<(), Over> {
        let from_any = matches!(self.query.resource_version.as_str(), "" | "0");
        let initial = self.query.send_initial_events.unwrap_or(from_any);
        if !initial && !from_any {
            // Not a number: too old, like any version of another hub.
            self.position = self.query.resource_version.parse().unwrap_or_default();
            return Ok(());
        }
        let (version, objects) = self.store.list(self.resource);
        self.position = version;
        if initial {
            for (_, object) in objects.iter().filter(|(_, object)| self.query.filter.matches(object)) {
                self.event("ADDED", object).await?;
            }
        }
        if self.query.send_initial_events == Some(true) && self.query.bookmarks {
            self.bookmark(json!({INITIAL_EVENTS_END: "true"})).await?;
        }
        Ok(())
    }

    async fn changes(&mut self) -> Result<(), Over> {
        self.watches.passed(self.resource).await;
        let Ok((version, changes)) = self.store.since(self.resource, self.position) else {
            let message = format!("too old resource version: {}", self.position);
            self.event("ERROR", &status(410, &message)).await?;
            return Err(Over);
        };
        self.position = version;
        for change in changes {
            if let Some((kind, object)) = self.seen(change) {
                self.event(kind, &object).await?;
            }
        }
        Ok(())
    }

    /// A change as seen through the caller's filter: an object that stops matching was deleted.
    fn seen(&self, change: Change) -> Option<(&'static str, Value)> {
        let matching = |object: Option<Value>| object.filter(|object| self.query.filter.matches(object));
        match (matching(change.before), matching(change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some(("ADDED", after)),
            (Some(_), Some(after)) => Some(("MODIFIED", after)),
            (Some(mut before), None) => {
                before["metadata"]["resourceVersion"] = change.version.to_string().into();
                Some(("DELETED", before))
            }
        }
    }

    async fn obey(&mut self) -> Result<(), Over> {
        let now = self.orders.borrow_and_update().clone();
        let before = std::mem::replace(&mut self.since, now.clone());
        if now.ended[before.ended.len()..].contains(&self.resource) {
            self.changes().await?;
            return Err(Over);
        }
        if now.aborts > before.aborts {
            let _ = self.lines.send(Err(Aborted)).await; // an error is the caller leaving
            return Err(Over);
        }
        if now.ends > before.ends {
            return Err(Over);
        }
        if now.bookmarks > before.bookmarks && self.query.bookmarks {
            self.changes().await?; // a bookmark promises that everything before it was sent
            self.bookmark(json!({})).await?;
        }
        Ok(())
    }

    async fn bookmark(&self, annotations: Value) -> Result<(), Over> {
        let mut metadata = json!({"resourceVersion": self.position.to_string(), "creationTimestamp": null});
        if annotations.as_object().is_some_and(|annotations| !annotations.is_empty()) {
            metadata["annotations"] = annotations;
        }
        let (kind, version) = (self.resource.kind(), self.resource.api_version());
        self.event("BOOKMARK", &json!({"kind": kind, "apiVersion": version, "metadata": metadata})).await
    }

    async fn event(&self, kind: &str, object: &Value) -> Result<(), Over> {
        // The type comes first, as API servers write it.
        let line = format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n");
        self.lines.send(Ok(line.into())).await.map_err(|_| Over)
    }
}

// === impl WatchBody ===

impl http_body::Body for WatchBody {
    type Data = Bytes;
    type Error = Aborted;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Aborted>>> {
        Poll::Ready(ready!(self.0.poll_recv(cx)).map(|line| line.map(Frame::data)))
    }
}

// === impl Open ===

impl Open {
    fn new(resource: Resource, watches: Arc<Watches>) -> Self {
        watches.count(resource, 1);
        Self(resource, watches)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.1.count(self.0, -1);
    }
}
