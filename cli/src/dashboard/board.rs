//! What is known about all clusters, and what of it has changed since the last look.
//!
//! Readers keep the snapshot that they have shown, and compare it with the newest: nothing queues
//! up for a slow reader. A page names the snapshot that it was made from. The last few are kept, so
//! that its stream begins where the page ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use super::cells::{Cells, Rating};
use super::html::Html;

/// Snapshots that are kept. A page of an older one gets everything again.
const KEPT: usize = 8;

/// All clusters at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshot {
    pub version: u64,
    pub clusters: BTreeMap<String, Arc<Cells>>,
    pub notices: Vec<Notice>,
    /// The hub has been asked at least once.
    pub asked: bool,
}

/// Something the person should know: what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub what: String,
    pub remedy: String,
}

/// The changes for a page.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct Patch {
    /// Fields by cluster: those that differ, or all of a new cluster.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub clusters: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<String>,
    /// `clusters` has all clusters: a page drops the others.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
    /// Markup by the id of its place in the page.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<&'static str, Html>,
}

/// The newest snapshot, for many readers.
#[derive(Debug)]
pub struct Board {
    newest: watch::Sender<Arc<Snapshot>>,
    past: Mutex<VecDeque<Arc<Snapshot>>>,
    wanted: Notify,
}

// === impl Snapshot ===

impl Snapshot {
    /// The number of clusters in each state, in the order of [`Rating::ALL`].
    pub fn counts(&self) -> [usize; Rating::ALL.len()] {
        Rating::ALL.map(|state| self.clusters.values().filter(|cells| cells.state == state).count())
    }

    /// The changes since `before`, without the parts.
    pub fn since(&self, before: &Self) -> Patch {
        let mut patch = Patch::default();
        for (name, cells) in &self.clusters {
            let known = before.clusters.get(name);
            if known.is_some_and(|known| Arc::ptr_eq(known, cells)) {
                continue;
            }
            let changed: Map<String, Value> = match known {
                None => cells.fields().into_iter().map(field).collect(),
                Some(known) => {
                    let both = cells.fields().into_iter().zip(known.fields());
                    both.filter(|(new, old)| new != old).map(|(new, _)| field(new)).collect()
                }
            };
            if !changed.is_empty() {
                patch.clusters.insert(name.clone(), Value::Object(changed));
            }
        }
        patch.gone = before.clusters.keys().filter(|name| !self.clusters.contains_key(*name)).cloned().collect();
        patch
    }
}

fn field((name, words): (&'static str, &str)) -> (String, Value) {
    (name.to_owned(), Value::from(words))
}

// === impl Patch ===

impl Patch {
    pub fn is_empty(&self) -> bool {
        !self.whole && self.clusters.is_empty() && self.gone.is_empty() && self.parts.is_empty()
    }
}

// === impl Board ===

impl Board {
    pub fn new() -> Self {
        Self { newest: watch::Sender::new(Arc::default()), past: Mutex::default(), wanted: Notify::new() }
    }

    /// Shows `clusters` and `notices` from now on, if they differ from what is shown.
    pub fn show(&self, clusters: BTreeMap<String, Arc<Cells>>, notices: Vec<Notice>) {
        self.newest.send_if_modified(|newest| {
            if newest.asked && newest.clusters == clusters && newest.notices == notices {
                return false;
            }
            let mut past = self.past.lock();
            if past.len() == KEPT {
                past.pop_front();
            }
            past.push_back(Arc::clone(newest));
            *newest = Arc::new(Snapshot { version: newest.version + 1, clusters, notices, asked: true });
            true
        });
    }

    /// For a reader that keeps looking.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Snapshot>> {
        self.wanted.notify_one();
        self.newest.subscribe()
    }

    /// For a reader that looks once.
    pub fn look(&self) -> Arc<Snapshot> {
        self.wanted.notify_one();
        self.newest()
    }

    /// For code that shows something here: it does not count as a reader.
    pub fn newest(&self) -> Arc<Snapshot> {
        Arc::clone(&self.newest.borrow())
    }

    /// The snapshot of this version, if it is still kept.
    pub fn past(&self, version: u64) -> Option<Arc<Snapshot>> {
        let newest = self.newest();
        let past = self.past.lock();
        past.iter().chain([&newest]).find(|snapshot| snapshot.version == version).cloned()
    }

    /// Completes when a page is open.
    pub async fn watched(&self) {
        let wanted = self.wanted.notified();
        if self.newest.receiver_count() == 0 {
            wanted.await;
        } else {
            // Takes back the notice of a reader that is still here: when all have left, it must not
            // count as one more look.
            wanted.now_or_never();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cells(status: &'static str, latency: &str) -> Arc<Cells> {
        Arc::new(Cells { state: Rating::Good, status, latency: latency.into(), ..Cells::default() })
    }

    fn shown(board: &Board, clusters: &[(&str, Arc<Cells>)]) -> Arc<Snapshot> {
        let clusters = clusters.iter().map(|(name, cells)| ((*name).to_owned(), Arc::clone(cells)));
        board.show(clusters.collect(), Vec::new());
        board.look()
    }

    #[test]
    fn only_what_changed_is_sent() {
        let board = Board::new();
        let (same, before) = (cells("Ready", "9 ms"), cells("Ready", "7 ms"));
        let first = shown(&board, &[("a", Arc::clone(&same)), ("b", before), ("c", cells("Ready", ""))]);
        let again = shown(&board, &[("a", same), ("b", cells("Late", "7 ms")), ("d", cells("Ready", "1 ms"))]);
        let patch = again.since(&first);
        assert_eq!(Value::Object(patch.clusters["b"].as_object().unwrap().clone()), json!({"status": "Late"}));
        assert_eq!(patch.clusters["d"].as_object().unwrap().len(), 11, "of a new cluster all");
        assert_eq!((patch.clusters.len(), &*patch.gone), (2, &["c".to_owned()][..]));
        assert!(again.since(&again).is_empty());
        assert_eq!(again.since(&Snapshot::default()).clusters.len(), 3, "who knows nothing gets everything");
    }

    #[test]
    fn equal_cells_of_another_look_are_no_change() {
        let board = Board::new();
        let first = shown(&board, &[("a", cells("Ready", "9 ms"))]);
        let second = shown(&board, &[("a", cells("Ready", "9 ms"))]);
        assert_eq!((first.version, second.version), (1, 1));
    }

    #[test]
    fn the_last_snapshots_are_kept_and_no_more() {
        let board = Board::new();
        for number in 1..=20 {
            shown(&board, &[("a", cells("Ready", &format!("{number} ms")))]);
        }
        assert_eq!(board.past(20).map(|snapshot| snapshot.version), Some(20));
        assert!(board.past(12).is_some() && board.past(11).is_none() && board.past(21).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_asked_while_nobody_looks() {
        use std::time::Duration;

        use tokio::time::timeout;
        let (board, moment) = (Board::new(), Duration::from_mins(1));
        assert!(timeout(moment, board.watched()).await.is_err(), "nobody looks");
        board.look();
        assert!(timeout(moment, board.watched()).await.is_ok(), "somebody looked");
        assert!(timeout(moment, board.watched()).await.is_err(), "once");
        let reader = board.subscribe();
        for _ in 0..3 {
            assert!(timeout(moment, board.watched()).await.is_ok(), "somebody goes on looking");
        }
        drop(reader);
        assert!(timeout(moment, board.watched()).await.is_err(), "nobody looks any more");
    }
}
