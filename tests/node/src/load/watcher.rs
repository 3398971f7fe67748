//! Watches objects that are written directly to the member.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use bytes::Bytes;
use chaos_tests::caller::Caller;
use chaos_tests::conclusion::Answer;
use chaos_tests::feed::{Feed, Next};
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::tried::{Asked, Failed, refused, unanswered};
use super::{NAMESPACE, Shared, straight};
use crate::cluster::Cluster;

/// Pause between two objects.
const PACE: Duration = Duration::from_millis(150);
/// Pause between two tries to open a stream.
const AGAIN: Duration = Duration::from_millis(300);
/// Label of this load's objects: objects of another load may exist.
const LABEL: &str = "load";
/// Number of loads so far; their objects stay.
static RUNS: AtomicUsize = AtomicUsize::new(0);

/// A watcher and its writer.
pub(super) struct Watched {
    feed: Arc<Mutex<Feed>>,
    watcher: JoinHandle<()>,
    /// Returns the objects that were written: uid and name.
    writer: JoinHandle<Result<HashMap<String, String>>>,
}

// === impl Watched ===

impl Watched {
    pub(super) fn start(
        runtime: &Runtime,
        shared: &Arc<Shared>,
        through: Caller,
        base: &str,
        cluster: &Cluster,
    ) -> Self {
        let run = RUNS.fetch_add(1, Ordering::Relaxed).to_string();
        let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        let straight = straight(cluster);
        let feed = Arc::new(Mutex::new(Feed::default()));
        let query = format!("{base}{path}?labelSelector={LABEL}%3D{run}");
        let watcher = {
            let (feed, shared) = (Arc::clone(&feed), Arc::clone(shared));
            runtime.spawn(async move { watch(&shared, &through, &query, &feed).await })
        };
        let shared = Arc::clone(shared);
        let writer = runtime.spawn(async move { write(&shared, &straight, &path, &run).await });
        Self { feed, watcher, writer }
    }

    /// Returns how many objects were written; an error if one was not seen.
    pub(super) fn finish(self, runtime: &Runtime, limit: Duration) -> Result<usize> {
        let written = runtime.block_on(async { timeout(limit, self.writer).await }).context("a writer")???;
        ensure!(!written.is_empty(), "nothing was written");
        let missing = || self.feed.lock().missing(&written);
        let seen = async {
            let end = Instant::now() + limit;
            while !missing().is_empty() && Instant::now() < end {
                sleep(AGAIN).await;
            }
        };
        runtime.block_on(seen);
        self.watcher.abort();
        let missing = missing();
        ensure!(missing.is_empty(), "a watcher never saw {} of {}: {missing:?}", missing.len(), written.len());
        Ok(written.len())
    }
}

async fn write(shared: &Shared, caller: &Caller, path: &str, run: &str) -> Result<HashMap<String, String>> {
    let mut written = HashMap::new();
    while !shared.is_over() {
        let name = format!("{LABEL}-{run}-{}", written.len());
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "labels": {LABEL: run}}});
        let answer = caller.whole(Method::POST, path, object.to_string().into()).await;
        let answer = answer.map_err(|failure| anyhow!("the member itself: {failure:?}"))?;
        ensure!(answer.status == StatusCode::CREATED, "the member itself: {}", answer.status);
        let created: Value = serde_json::from_slice(&answer.body)?;
        written.insert(created["metadata"]["uid"].as_str().context("no uid")?.to_owned(), name);
        sleep(PACE).await;
    }
    Ok(written)
}

async fn watch(shared: &Shared, caller: &Caller, query: &str, feed: &Mutex<Feed>) {
    let mut listed = false;
    loop {
        if listed {
            match open(caller, query, feed).await {
                Ok(body) => {
                    listed = read(shared, feed, body).await != Next::List;
                    continue;
                }
                Err(Failed::Again(_)) => _ = shared.repeated.fetch_add(1, Ordering::Relaxed),
                Err(Failed::Finally(what)) => shared.wrong(format!("a watcher: {query}: {what}")),
            }
        } else {
            listed = list(shared, caller, query, feed).await.is_some();
        }
        sleep(AGAIN).await;
    }
}

async fn list(shared: &Shared, caller: &Caller, query: &str, feed: &Mutex<Feed>) -> Option<()> {
    let answer = Asked::get(query).ask(shared, caller, |answer| listed(answer).is_some()).await?;
    let (version, items) = listed(&answer)?;
    if let Err(lost) = feed.lock().list(version, items) {
        shared.wrong(format!("a watcher: {query}: {lost}"));
    }
    Some(())
}

/// The version of a list, and its objects: the uid and the version of each.
fn listed(answer: &Answer) -> Option<(u64, Vec<(String, u64)>)> {
    let list: Value = serde_json::from_slice(&answer.body).ok()?;
    let version = list["metadata"]["resourceVersion"].as_str()?.parse().ok()?;
    let items = list["items"].as_array()?;
    let known = |item: &Value| {
        let text = |key: &str| item["metadata"][key].as_str();
        Some((text("uid")?.to_owned(), text("resourceVersion")?.parse().ok()?))
    };
    Some((version, items.iter().filter_map(known).collect()))
}

async fn open(caller: &Caller, query: &str, feed: &Mutex<Feed>) -> Result<Incoming, Failed> {
    let query = format!("{query}&watch=true&allowWatchBookmarks=true&resourceVersion={}", feed.lock().last());
    let response = caller.open(Method::GET, &query, Bytes::new()).await;
    let response = response.map_err(|failure| unanswered(&Method::GET, failure))?;
    let status = response.status();
    if status == StatusCode::OK {
        return Ok(response.into_body());
    }
    Err(refused(status, response.headers(), status.to_string()))
}

/// Reads one stream to its end.
async fn read(shared: &Shared, feed: &Mutex<Feed>, mut body: Incoming) -> Next {
    let wrong = |what: String| shared.wrong(format!("a watcher: {what}"));
    loop {
        let bytes = match body.frame().await {
            Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            ended => {
                let _ = feed.lock().end(ended.is_none()).map_err(wrong);
                return Next::Resume;
            }
        };
        match feed.lock().take(&bytes) {
            Ok(Next::Read) => {}
            Ok(next) => return next,
            Err(what) => {
                wrong(what);
                return Next::List;
            }
        }
    }
}
