//! One watch as the client sees it: newline-delimited events, each a piece of the response body.
//!
//! A change becomes ADDED, MODIFIED or DELETED by whether the object was and is selected, so a pod that stops
//! matching a label selector leaves the watch (`k8s.io/apiserver/pkg/storage/cacher`, `cacheWatcher`).

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::broadcast::{self, error::RecvError},
    time::{Instant, Interval, MissedTickBehavior, interval_at, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::Subscription;
use crate::member::{
    clock::Clock,
    model::{Change, stamp},
    object::Object,
    render::Render,
    selector::Selection,
    status::Refusal,
};

/// How long a watch lives when the client names no `timeoutSeconds`.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);
/// The longest a client can ask for.
const MAX_TIMEOUT: Duration = Duration::from_hours(24);
/// How often a watch that asked for bookmarks gets one.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// What the client asked of its watch.
#[derive(Debug)]
pub(crate) struct Options {
    /// Which objects it is about.
    pub(crate) selection: Selection,
    /// How objects are represented.
    pub(crate) render: Render,
    /// Whether it wants bookmarks.
    pub(crate) bookmarks: bool,
    /// After how many seconds it ends, cleanly.
    pub(crate) timeout_seconds: Option<u64>,
}

/// A running watch.
#[derive(Debug)]
pub(crate) struct Stream {
    options: Options,
    backlog: VecDeque<Arc<Change>>,
    live: broadcast::Receiver<Arc<Change>>,
    version: u64,
    clock: Clock,
    deadline: Instant,
    bookmark: Interval,
    stop: CancellationToken,
    ended: bool,
}

enum Next {
    Change(Arc<Change>),
    Bookmark,
    Lagged,
    End,
}

// === impl Stream ===

impl Stream {
    /// Starts to deliver `subscription`; ends early when `stop` is cancelled.
    pub(crate) fn new(options: Options, subscription: Subscription, clock: Clock, stop: CancellationToken) -> Self {
        let lifetime = options.timeout_seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs).min(MAX_TIMEOUT);
        let now = Instant::now();
        let mut bookmark = interval_at(now + BOOKMARK_INTERVAL, BOOKMARK_INTERVAL);
        bookmark.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let Subscription { backlog, live, version } = subscription;
        let deadline = now + lifetime;
        Self { options, backlog, live, version, clock, deadline, bookmark, stop, ended: false }
    }

    /// The next event with its newline; `None` when the watch is over.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let event = match self.wait().await {
                Next::Change(change) => self.event(&change),
                Next::Bookmark => Some(self.bookmark_event()),
                Next::Lagged => {
                    self.ended = true;
                    Some(json!({"type": "ERROR", "object": Refusal::Expired(self.version).to_status()}))
                }
                Next::End => return None,
            };
            if let Some(event) = event {
                return Some(Bytes::from(format!("{event}\n")));
            }
        }
        None
    }

    async fn wait(&mut self) -> Next {
        if let Some(change) = self.backlog.pop_front() {
            return Next::Change(change);
        }
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Next::End,
            () = sleep_until(self.deadline) => Next::End,
            received = self.live.recv() => match received {
                Ok(change) => Next::Change(change),
                Err(RecvError::Lagged(_)) => Next::Lagged,
                Err(RecvError::Closed) => Next::End,
            },
            _ = self.bookmark.tick(), if self.options.bookmarks => Next::Bookmark,
        }
    }

    fn event(&mut self, change: &Change) -> Option<Value> {
        self.version = self.version.max(change.version);
        let selected =
            |object: &Option<Arc<Object>>| object.clone().filter(|object| self.options.selection.matches(object));
        let (kind, object) = match (selected(&change.before), selected(&change.after)) {
            (None, None) => return None,
            (None, Some(after)) => ("ADDED", after.body.clone()),
            (Some(_), Some(after)) => ("MODIFIED", after.body.clone()),
            (Some(before), None) => {
                // The last state that matched, at the version of its departure: where to resume from.
                let mut body = before.body.clone();
                stamp(&mut body, change.version);
                ("DELETED", body)
            }
        };
        let shown = self.options.render.event(self.options.selection.kind, &object, self.clock.now());
        Some(json!({"type": kind, "object": shown}))
    }

    fn bookmark_event(&mut self) -> Value {
        let shown = self.options.render.bookmark(self.options.selection.kind, self.version);
        json!({"type": "BOOKMARK", "object": shown})
    }
}
