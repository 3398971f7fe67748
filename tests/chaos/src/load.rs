//! Callers of all kinds, on every way to every member, which record the answers they get.

mod follower;
mod reader;
mod uploader;
mod watcher;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use http::StatusCode;
use net::backoff::Backoff;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::caller::Caller;
use crate::dice::Dice;
use crate::feed::Feed;
use crate::ledger::{Entry, Object, settle};
use crate::report::Report;

/// Namespace of all objects that are requested from members.
pub const NAMESPACE: &str = "chaos";
/// A `ConfigMap` that names its member.
pub const MARKER: &str = "marker";
/// A pod whose log grows for as long as the run lasts.
pub const TALKER: &str = "talker";
/// A pod whose log is whole.
pub const BOOK: &str = "book";
/// Its lines: 13 MB, more than the way to a slow reader holds.
pub const BOOK_LINES: u64 = 100_000;
/// Selects the objects that writers make.
const WRITTEN: &str = "labelSelector=chaos%3Dledger";
/// The annotation with the entry's id.
const ENTRY: &str = "chaos/entry";
/// Objects of one page of a list.
const PAGE: usize = 2000;

/// Writers on each way.
const WRITERS: usize = 3;
/// Objects that each creates at most, besides bursts: lists have to hold them all.
const OBJECTS: u32 = 3000;
/// Least pause between two of them.
const PACE: Duration = Duration::from_millis(250);

/// Pauses after a failure: short, or nothing is tried while a fault lasts.
const AGAIN: Backoff = Backoff::doubling(Duration::from_millis(50), Duration::from_millis(800));

/// A way to a member.
#[derive(Clone, Debug)]
pub struct Route {
    /// The member's and the way's.
    pub name: String,
    /// The member's.
    pub member: &'static str,
    pub caller: Arc<Caller>,
    /// Prefix of the paths of the member's API.
    pub base: String,
}

/// State that all callers share.
#[derive(Debug)]
struct Shared {
    report: Arc<Report>,
    dice: Dice,
    entries: Mutex<Vec<Entry>>,
    next: AtomicU64,
    ended: AtomicBool,
}

/// Running callers.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    /// Tasks that end by themselves when asked to.
    asked: Vec<JoinHandle<()>>,
    watchers: Vec<Watcher>,
    others: Vec<JoinHandle<()>>,
    /// Straight to each member.
    members: Vec<Route>,
}

#[derive(Debug)]
struct Watcher {
    name: String,
    member: &'static str,
    feed: Arc<Mutex<Feed>>,
    task: JoinHandle<()>,
}

// === impl Route ===

impl Route {
    fn path(&self, rest: &str) -> String {
        format!("{}/api/v1/namespaces/{NAMESPACE}/{rest}", self.base)
    }

    /// Whether the marker can be read here. An error: the answer instead.
    pub async fn read_marker(&self) -> Result<(), Misread> {
        let path = self.path(&format!("configmaps/{MARKER}"));
        let answer = self.caller.get(&path).await.map_err(|failure| Misread::Failed(format!("{failure:?}")))?;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status == StatusCode::NOT_FOUND && text.contains("no such cluster") {
            return Err(Misread::Wrong(text));
        }
        if answer.status != StatusCode::OK || text.is_empty() {
            return Err(Misread::Failed(format!("{} {}", answer.status, text.trim())));
        }
        let marker: Value = serde_json::from_str(&text).unwrap_or_default();
        if marker["data"]["member"] == self.member { Ok(()) } else { Err(Misread::Wrong(text)) }
    }

    /// All objects that writers have made here. Straight to the member, or it is a watcher's list.
    async fn written(&self) -> Result<(u64, Vec<Value>)> {
        let (mut items, mut next) = (Vec::new(), String::new());
        loop {
            let path = self.path(&format!("configmaps?{WRITTEN}&limit={PAGE}{next}"));
            let answer = self.caller.get(&path).await.map_err(|failure| anyhow!("{failure:?}"))?;
            ensure!(answer.status == StatusCode::OK, "{}", answer.status);
            let mut page: Value = serde_json::from_slice(&answer.body).context("a list that was cut")?;
            let Value::Array(more) = page["items"].take() else { bail!("a list without items") };
            items.extend(more);
            match page["metadata"]["continue"].as_str() {
                Some(token) if !token.is_empty() => next = format!("&continue={token}"),
                _ => {
                    let version = page["metadata"]["resourceVersion"].as_str().context("a list without a version")?;
                    return Ok((version.parse()?, items));
                }
            }
        }
    }
}

/// A read that did not succeed.
#[derive(Clone, Debug)]
pub enum Misread {
    Failed(String),
    /// An answer of another member, or that there is no such cluster.
    Wrong(String),
}

// === impl Shared ===

impl Shared {
    fn is_over(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

// === impl Load ===

impl Load {
    /// Starts callers on `routes`, for a run of about `length`. `members`: the ways straight to
    /// them.
    pub fn start(
        runtime: &Handle,
        report: &Arc<Report>,
        routes: &[Route],
        members: Vec<Route>,
        length: Duration,
    ) -> Self {
        let pace = PACE.max(length / OBJECTS);
        let shared = Arc::new(Shared {
            report: Arc::clone(report),
            dice: Dice::new(report.seed),
            entries: Mutex::default(),
            next: AtomicU64::new(0),
            ended: AtomicBool::new(false),
        });
        let (mut asked, mut watchers, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for route in routes {
            let with = || (Arc::clone(&shared), route.clone());
            for number in 0..WRITERS {
                let (of, to) = with();
                asked.push(runtime.spawn(async move { writer::run(&of, &to, number, pace).await }));
            }
            let (of, to) = with();
            asked.push(runtime.spawn(async move { reader::run(&of, &to).await }));
            let direct = members.iter().find(|member| member.member == route.member).cloned().expect("a way to each");
            let (of, to) = with();
            asked.push(runtime.spawn(async move { uploader::run(&of, &to, &direct).await }));
            for seconds in [None, Some(20)] {
                let feed = Arc::new(Mutex::new(Feed::default()));
                let (of, to) = with();
                let into = Arc::clone(&feed);
                let task = runtime.spawn(async move { watcher::run(&of, &to, &into, seconds).await });
                watchers.push(Watcher {
                    name: format!("a watcher of {}", route.name),
                    member: route.member,
                    feed,
                    task,
                });
            }
            let (of, to) = with();
            others.push(runtime.spawn(async move { follower::follow(&of, &to).await }));
            let (of, to) = with();
            others.push(runtime.spawn(async move { follower::download(&of, &to).await }));
        }
        Self { shared, asked, watchers, others, members }
    }

    /// Lets callers end, and compares the answers they got with what there is. Watchers get `limit`
    /// to see the rest; `None`: they are not waited for.
    pub async fn settle(self, limit: Option<Duration>) -> Result<()> {
        let report = Arc::clone(&self.shared.report);
        self.shared.ended.store(true, Ordering::Relaxed);
        for task in self.asked {
            task.await.context("a caller panicked")?;
        }
        let entries = std::mem::take(&mut *self.shared.entries.lock());
        let (mut objects, mut names) = (Vec::new(), HashMap::new());
        for member in &self.members {
            let (_, items) = member.written().await.with_context(|| format!("the objects of {}", member.name))?;
            objects.extend(items.iter().map(object));
            let named = items.iter().map(|item| (text(item, "uid"), text(item, "name"))).collect();
            names.insert(member.member, named);
        }
        report.say(&format!("comparing {} entries with {} objects", entries.len(), objects.len()));
        for wrong in settle(&entries, &objects) {
            report.violation("the ledger", &wrong);
        }
        let deadline = limit.map(|limit| tokio::time::Instant::now() + limit);
        for watcher in self.watchers {
            match deadline {
                Some(deadline) => watcher.see(&report, &names[watcher.member], deadline).await,
                None => watcher.task.abort(),
            }
        }
        self.others.iter().for_each(JoinHandle::abort);
        Ok(())
    }
}

// === impl Watcher ===

impl Watcher {
    /// Waits until it has seen all of `objects`.
    async fn see(&self, report: &Report, objects: &HashMap<String, String>, deadline: tokio::time::Instant) {
        while !self.feed.lock().missing(objects).is_empty() && tokio::time::Instant::now() < deadline {
            sleep(Duration::from_millis(100)).await;
        }
        self.task.abort();
        let feed = self.feed.lock();
        let missing = feed.missing(objects);
        if !missing.is_empty() {
            let some: Vec<_> = missing.iter().take(5).collect();
            let what = format!("{} objects were never told, such as {some:?}; it is at {}", missing.len(), feed.last());
            report.violation(&self.name, &what);
        }
    }
}

/// The object that a writer creates.
fn document(entry: &Entry) -> Value {
    let mut metadata = json!({
        "labels": {"chaos": "ledger"},
        "annotations": {ENTRY: entry.id.to_string()},
    });
    match &entry.name {
        Some(name) => metadata["name"] = json!(name),
        None => metadata["generateName"] = json!("any-"),
    }
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
}

fn object(item: &Value) -> Object {
    let id = item["metadata"]["annotations"][ENTRY].as_str().and_then(|text| text.parse().ok());
    Object { id: id.unwrap_or(u64::MAX), name: text(item, "name"), uid: text(item, "uid") }
}

fn text(item: &Value, key: &str) -> String {
    item["metadata"][key].as_str().unwrap_or_default().to_owned()
}
